set -e; f() { echo in; false; echo no; }; f; echo never
