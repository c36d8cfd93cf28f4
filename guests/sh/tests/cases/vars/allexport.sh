set -a; v=1; set +a; w=2; bash -c 'echo "$v [$w]"'
