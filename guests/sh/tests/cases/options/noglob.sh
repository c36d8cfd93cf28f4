touch a b; set -f; echo *; set +f; echo *
