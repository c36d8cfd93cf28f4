bash -n -c 'echo no'; echo $?; bash -n -c 'if' 2>/dev/null; echo $?; echo 'echo hi' > s; bash -n s; echo $?
