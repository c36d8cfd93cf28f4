c=echo; $c hi; c='echo -n'; $c a; echo; "$c" 2>/dev/null; echo $?; x=5 $nosuch; echo $x; cmd=(printf '%s-' a b); "${cmd[@]}"; echo; e=exit; ($e 3); echo $?; a='x=1'; $a 2>/dev/null; echo $?
