set -- a b c d; shift; echo $@; shift 2; echo $@; shift 5; echo $? $@; shift 0; echo $@; shift -1 2>/dev/null; echo $?
