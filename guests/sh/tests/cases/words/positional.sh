set -- one 'two three' four
echo $1 "$2" $3 $# "$@" "$*" $@ $*
for i in "$@"; do echo "<$i>"; done; for i in $@; do echo "<$i>"; done; for i in "$*"; do echo "<$i>"; done
IFS=,; echo "$*" $*; IFS=; echo "$*" $*; unset IFS; echo "$*"
set -- 1 2 3 4 5 6 7 8 9 10 11; echo $10 ${10} ${11} "${@:2:3}" "${@: -2}" "${@:0:2}" | sed 's#/[^ ]*#NAME#g'
shift 3; echo $1 $#; shift; echo $1
