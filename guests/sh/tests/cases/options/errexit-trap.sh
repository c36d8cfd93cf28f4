set -e; trap 'echo "exit $?"' EXIT; f() { return 3; }; f; echo never
