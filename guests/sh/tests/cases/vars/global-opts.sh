f() { local -; set -f; echo *; }; touch a b; f; echo *
