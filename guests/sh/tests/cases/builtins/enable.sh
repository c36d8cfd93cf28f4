enable -n echo; type -t echo; enable echo; type -t echo; enable nosuch 2>/dev/null; echo $?; enable | head -2
