{ echo a; echo b; } | sort -r; (cd /; pwd); pwd | sed 's/.*/same/'; x=1; (x=2); echo $x; { x=3; }; echo $x; (exit 7); echo $?; { echo out; echo err >&2; } 2>/dev/null
( ( echo nested ) ); ((1)) && echo arith; (echo a; (echo b; (echo c)))
