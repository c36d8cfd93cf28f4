history; echo $?; fc -l 2>/dev/null; history -c; echo $?
