let x=5 y=x+1; echo $x $y; let 'x++'; echo $x; let "a=1" "b=2" "a+b"; echo $?; let; echo $?; let 1-1; echo $?
