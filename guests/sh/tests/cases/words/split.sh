x='a b  c'; IFS=' '; set -- $x; echo $#
x=a:b::c:; IFS=:; set -- $x; echo $# "$1|$2|$3|$4|$5"
x=' a : b : '; IFS=' :'; set -- $x; echo $# "$1|$2"
x=:a; IFS=:; set -- $x; echo $# "[$1]" "[$2]"
IFS=; x='a b'; set -- $x; echo $#
unset IFS; x=$'a\tb\nc d'; set -- $x; echo $#
IFS=x; v=axbxc; echo $v "$v"; for i in $v; do echo -n "<$i>"; done; echo
IFS=' '; v='  lead trail  '; set -- $v; echo $#; set -- "p$v"s; echo $#; set -- p${v}s; echo $# "$1" "$4"
