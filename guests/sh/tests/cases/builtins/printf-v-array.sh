declare -A m; printf -v 'm[key]' '%s' val; echo ${m[key]}; printf -v x 'a\nb'; echo "$x"; printf -v 1x y 2>/dev/null; echo $?
