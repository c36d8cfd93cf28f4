f() { echo a 'b c' "d $x" > out 2>&1; if true; then echo b; elif false; then echo c; else echo d; fi; while a; do b; done; for i in 1 2; do echo $i; done; for ((i=0;i<3;i++)); do echo; done; case $x in a|b) echo 1;; *) ;; esac; (sub; shell); { group; two; }; ((x+1)); [[ -f a && $b == c* ]]; a && b || c; a | b; bg & ! neg; g() { inner; }; arr=(1 2 [3]=4); local z=5; echo $(cmd; two) `bq` $((1 + 2)) ${x:-y}; }
declare -f f; type f | head -3; declare -F f; declare -F nosuch; echo $?
h() ( sub ); declare -f h; m() { cat; } > file 2>&1; declare -f m
