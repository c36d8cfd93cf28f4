cmd_start() { echo starting "$@"; }; cmd_stop() { echo stopping; }
dispatch() { local c=$1; shift; if declare -F "cmd_$c" >/dev/null; then "cmd_$c" "$@"; else echo "no command $c"; return 1; fi; }
dispatch start a b; dispatch stop; dispatch nope; echo $?
