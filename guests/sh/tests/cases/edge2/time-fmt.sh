TIMEFORMAT='%R %U %S'; { time true; } 2>&1 | sed 's/[0-9]/N/g'; { time -p true; } 2>&1 | cut -d' ' -f1; time ! true; echo $?
