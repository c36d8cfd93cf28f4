exec 2>/dev/null; ; echo $?
