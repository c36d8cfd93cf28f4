x="it's"; echo ${x@Q} ${x@U} ${x@u} ${x@L}; y='a\tb'; echo "${y@E}"; declare -r z=1; echo ${z@a} ${z@A}; a=(1 'b c'); echo ${a[@]@Q} "${a[@]@A}"; declare -A m=([k]=v); echo "${m[@]@K}" ${m[@]@a} "${a[@]@K}" "${a[@]@k}"
n=$'new\nline'; echo "${n@Q}"; declare -i i=3; echo "${i@A}" "${x@A}"; echo "${nosuch@Q}" "${@@Q}"; set -- 1 '2 3'; echo "${@@Q}" "${*@Q}" "${@@A}"
P='a\nb\\'; echo "${P@P}"
