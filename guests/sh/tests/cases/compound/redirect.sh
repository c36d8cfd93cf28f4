echo a > f1; echo b >> f1; cat < f1; cat f1 > f2; cat f2; echo err 2>&1 >/dev/null; { echo o; echo e >&2; } > both 2>&1; cat both; { echo o2; echo e2 >&2; } &> both; cat both; echo x &>> both; cat both
exec 3> f3; echo three >&3; exec 3>&-; cat f3; exec 4< f3; read l <&4; echo $l; exec 4<&-; echo in | cat 0<&0; cat <f1 >f4; cat f4
echo noclob > nc; set -C; echo again > nc; echo $?; echo force >| nc; cat nc; set +C
> empty; cat empty; wc -c < empty; exec 5<>rw; echo data >&5; exec 5>&-; cat rw; : > f1; wc -c <f1
{ echo to3 >&3; } 3>&1; (echo sub >&2) 2>&1; echo swap 3>&1 1>&2 2>&3 | cat; cat nosuch 2>/dev/null; echo $?; cat < nosuch 2>/dev/null; echo $?
if true; then echo inif; fi > iff; cat iff; for i in 1 2; do echo $i; done > forf; cat forf; while read a; do echo "r$a"; done < forf; f() { echo ff; } > fnf; f; cat fnf
exec {fd}> varfd; echo v >&$fd; exec {fd}>&-; cat varfd; ((fd>=10)) && echo high; 2>&1 echo pre; >f9 echo redirfirst; cat f9
echo a >&2 2>x || true; ls nosuch >out 2>err; wc -l < out; grep -c nosuch err; read x y < <(echo 1 2); echo $x$y; cat <(echo ps1) <(echo ps2); echo tee > >(cat); sleep 0.1; diff <(echo a) <(echo a) && echo same
: 3>&1 && echo ok; echo closed >&9 || echo bad; exec 6>&1 7>&6; echo via7 >&7; exec 6>&- 7>&-
echo "moved" 3>&1 >&3-; echo one two >file\ name; cat "file name"
