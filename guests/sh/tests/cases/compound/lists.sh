true && echo a; false && echo b; true || echo c; false || echo d; false && echo e || echo f; true && false || echo g; ! true; echo $?; ! false && echo h
false; echo $?; true; echo $?; (exit 42) || echo $?; a=1 && b=2; echo $a$b
true &&
echo newline
false ||
echo newline2
