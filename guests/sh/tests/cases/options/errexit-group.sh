set -e; { false && true; }; echo reached; f() { false && true; }; f; echo never
