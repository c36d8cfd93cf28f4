sleep 0.05 & wait; echo done; (echo bg; exit 3) & wait $!; echo $?; { sleep 0.02; echo second; } & echo first; wait; false & wait $!; echo $?; true & p=$!; wait $p; echo $?; wait; echo $?; sleep 5 & kill $!; wait $! 2>/dev/null; echo $?
for i in 1 2 3; do (exit $i) & pids+=($!); done; for p in "${pids[@]}"; do wait $p; echo $?; done; (exit 4) & wait -n; echo $?; wait 99999; echo $?
