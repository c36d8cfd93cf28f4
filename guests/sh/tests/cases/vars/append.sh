s=a; s+=b; s+="c d"; echo "$s"; unset u; u+=x; echo $u; declare -i i=1; i+=5; echo $i; a=(1); a+=(2 3); a[0]+=9; echo ${a[@]}; export e=1; e+=2; bash -c 'echo $e'
