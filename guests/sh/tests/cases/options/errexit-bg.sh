set -e; false & wait; echo a; false & wait $!; echo never
