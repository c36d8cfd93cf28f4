a=(1 2 3); echo ${a[0]} ${a[@]} ${#a[@]} ${!a[@]}; a[5]=six; echo ${a[@]} ${!a[@]} ${#a[@]}; a+=(7 8); echo ${!a[@]}; unset 'a[1]'; echo ${a[@]}; a=(); echo ${#a[@]}; a[3]=x; echo ${!a[@]}; b=("a b" c); for i in "${b[@]}"; do echo "<$i>"; done; for i in ${b[@]}; do echo "<$i>"; done; echo "${b[*]}"; IFS=,; echo "${b[*]}"
unset IFS; c=([2]=two [0]=zero three); echo "${c[@]}" "${!c[@]}"; echo "${c[@]:1}" "${c[@]:0:1}" ${c[-1]}; d=("${c[@]}"); echo ${#d[@]}; e=($(echo x y z)); echo ${e[1]}; f=({1..5}); echo ${f[@]:1:3} ${f[@]: -2}; echo ${f[@]/3/X} ${f[@]#1} ${f[*]^^}; x=str; echo ${x[0]} ${x[@]}; x[1]=y; echo ${x[@]}
g=(a b c); g[1]+=Z; echo ${g[@]}; g+=d; echo ${g[@]}; echo ${#g[0]}; i=1; echo ${g[i]} ${g[$i]} ${g[i+1]} ${g[$((i-1))]}; h=("" a ""); echo ${#h[@]}; for q in "${h[@]}"; do echo "[$q]"; done; echo "${h[@]}"; unset h; echo ${#h[@]} "${h[@]}"
declare -a z; z[2]=1; declare -p z; arr=(a\ b 'c d' "e f"); printf '<%s>' "${arr[@]}"; echo; n=(3 1 2); sorted=($(printf '%s\n' "${n[@]}" | sort)); echo ${sorted[@]}
multi=(
  one # comment
  two
  "three four"
); echo ${#multi[@]}
a=(1 2 3); echo "x${a[@]}y" "${a[*]}"; echo ${a[@]::2}; set -- "${a[@]}"; echo $3; a=("${a[@]:1}"); echo ${a[@]}; a=(0 "${a[@]}"); echo ${a[@]}; echo ${a[7]-unset} ${a[0]-unset} "${a[@]+set}"
