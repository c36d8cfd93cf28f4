fact() { if (($1<=1)); then echo 1; else echo $(($1 * $(fact $(($1-1))))); fi; }; fact 10
fib() { if (($1<2)); then r=$1; else local a; fib $(($1-1)); a=$r; fib $(($1-2)); r=$((a+r)); fi; }; fib 12; echo $r
