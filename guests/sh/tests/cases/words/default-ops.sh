unset u; e=; s=set
echo "${u-d}" "${u:-d}" "${e-d}" "${e:-d}" "${s-d}" "${s:-d}"
echo "${u+a}" "${u:+a}" "${e+a}" "${e:+a}" "${s+a}" "${s:+a}"
echo "${u=new}" $u; unset u; echo "${e:=new2}" $e
echo ${u:-a b c} "${u:-a   b}" ${u:-"a   b"} ${u:-'x  y'} "${u:-'q'}" "${u:-"dq"}"
echo ${u:-$(echo cmd)} ${u:-${s}} ${u:-$((1+2))}
