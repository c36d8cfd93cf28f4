x="a b"; echo ${nosuch:-"$x"} "${nosuch:-$x}" ${nosuch:-$x} ; for i in ${nosuch:-"$x" c}; do echo "<$i>"; done; for i in "${nosuch:-"$x" c}"; do echo "<$i>"; done; set -- 'p q' r; for i in ${nosuch:-"$@"}; do echo "<$i>"; done; for i in "${nosuch:-$@}"; do echo "<$i>"; done; for i in ${1+"$@"}; do echo "<$i>"; done
echo "${x:+"yes $x"}" "${x/"a b"/q}" "${x#"a "}" "${x#'a '}"
echo ${nosuch:-\}} "${nosuch:-\}}" "${nosuch:-a\"b}" "${nosuch-'a b'}" ${nosuch-'a  b'}
