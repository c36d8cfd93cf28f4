x=y; y=z; echo ${!x}; arr=(1 2 3); r='arr[1]'; echo ${!r}; r='arr[@]'; echo ${!r}
pre_a=1 pre_b=2; echo ${!pre_*} "${!pre_@}"
echo ${!nosuchprefix*}
set -- a b c; n=2; echo ${!n} ${!#}
