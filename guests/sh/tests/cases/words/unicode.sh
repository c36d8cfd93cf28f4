x=日本語; echo ${#x} ${x:1:1} ${x/本/B} "${x%語}"; [[ $x == ??? ]] && echo three; echo $'\u65e5' ; printf '%s\n' "$x"
for ((i=0;i<${#x};i++)); do echo -n "${x:i:1},"; done; echo
