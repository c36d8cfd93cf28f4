x=$(echo a; exit 4; echo b); echo "$? $x"; (exit 3) | cat; echo ${PIPESTATUS[0]}; { exit 6; } | cat; echo ok
