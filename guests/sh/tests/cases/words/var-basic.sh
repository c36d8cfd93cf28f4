x=hello; y="a b  c"; echo $x ${x} "$x" '$x' $y "$y" ${y}z "${x}s" $nosuch "[$nosuch]"
x+=world; echo $x
_a1=under; echo $_a1
