echo $((1 +)) 2>/dev/null; echo "a $?"
echo $((1 2)) 2>/dev/null; echo "b $?"
echo $((08)); echo "c $?"
((x = )) 2>/dev/null; echo "d $?"
let 'y=(' 2>/dev/null; echo "e $?"
echo $((2#3)) 2>/dev/null; echo "f $?"
z=abc; echo $((z)); w='1+'; echo $((w)) 2>/dev/null; echo "g $?"
echo $((5=3)) 2>/dev/null; echo h
