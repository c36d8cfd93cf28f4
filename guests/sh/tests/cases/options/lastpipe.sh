shopt -s lastpipe; printf '1\n2\n' | while read x; do ((s+=x)); done; echo $s; echo a | mapfile -t arr; echo ${arr[0]}; false | true; echo ${PIPESTATUS[@]}
