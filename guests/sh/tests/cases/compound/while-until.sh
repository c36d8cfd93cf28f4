i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done; until [ $i -eq 0 ]; do ((i--)); done; echo $i
while :; do echo once; break; done; i=0; while ((i<5)); do ((i++)); ((i==2)) && continue; ((i==4)) && break; echo $i; done
while false; do :; done; echo $?
for i in 1 2; do for j in a b; do [ $j = b ] && continue 2; echo $i$j; done; done; for i in 1 2; do for j in a b; do break 2; done; done; echo $i$j
