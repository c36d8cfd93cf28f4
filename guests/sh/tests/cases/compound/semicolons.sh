echo a; echo b ;
echo c;
{ echo d; }; ( echo e );
if true; then echo f; fi;
f() { :; }; f;
