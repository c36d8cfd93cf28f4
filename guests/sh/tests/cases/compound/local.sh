x=global; f() { local x=local; g; echo $x; x=changed; }; g() { echo "g sees $x"; x=fromg; }; f; echo $x
f() { local a=1 b c=3; echo "$a [$b] $c"; unset a; echo "[$a]"; }; a=outer; f; echo $a
f() { local -a arr=(1 2); local -A m=([x]=y); local -i n=2+3; echo ${arr[1]} ${m[x]} $n; }; f
f() { local x; echo "[${x-unset}]"; x=5; }; x=g; f; echo $x; local y 2>/dev/null; echo $?
