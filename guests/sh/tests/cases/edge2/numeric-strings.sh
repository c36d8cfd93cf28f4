x=007; echo $((10#$x+1)) $x; [[ 10 -gt 9 ]] && echo num; [[ 10 > 9 ]] || echo str; [ 5 -eq 05 ] && echo eq; y=" 5 "; echo $((y+1)); ((z=010)); echo $z; n=-3; echo $((n*n)) $((-n)) ${n#-}; printf '%03d\n' 7; echo $((0xFF)) $((2#101)) $((8#17)); for ((i=10;i>0;i-=3)); do echo -n "$i "; done; echo; echo $((5>3?1:0)) $((5<3||1)) $((!1)); seq -s, 1 3
echo $((1e3)) 2>/dev/null
echo "rc $?"
