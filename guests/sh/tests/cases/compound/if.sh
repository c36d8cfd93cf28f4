if true; then echo a; fi; if false; then echo b; else echo c; fi; if false; then :; elif true; then echo d; else echo e; fi; if false; then :; fi; echo $?
if ! false; then echo neg; fi; if true && false || true; then echo mix; fi
if
true
then
echo multi
fi
