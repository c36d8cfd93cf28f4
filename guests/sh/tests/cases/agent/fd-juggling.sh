exec 3>&1; out=$( { echo captured; echo direct >&3; } ); echo "[$out]"; exec 3>&-; { err=$( { echo o; echo e >&2; } 2>&1 1>&3 ); } 3>&1; echo "err=$err"; exec 5<<< "l1
l2"; while read -u 5 l; do echo ">$l"; done; exec 5<&-; f() { echo "to stderr" >&2; echo "to stdout"; }; f 2>/dev/null; f 2>&1 >/dev/null | cat; v=$(f 2>&1); echo "$v" | wc -l
