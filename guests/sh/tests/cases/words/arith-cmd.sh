((1)); echo $?; ((0)); echo $?; ((x=5,y=x*2)); echo $x $y; let a=1+2 'b = a * 2'; echo $a $b $?; let 0; echo $?
if ((x>3)); then echo big; fi
((x++)) || echo no; echo $x
