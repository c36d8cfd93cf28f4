for i in a b c; do echo -n $i; done; echo; for i in; do echo never; done; for i in $(seq 3); do echo -n $i; done; echo
set -- x y; for a; do echo $a; done; for a in "$@"
do echo $a
done
for ((i=0;i<3;i++)) { echo -n $i; }; echo; for ((;;)); do break; done; for i in 1 2 3; { echo -n $i; }; echo
for ((i=0,j=10;i<j;i+=3,j-=2)); do echo $i $j; done
for x in *nomatch; do echo $x; done; echo "after: $x"
