x=hello; a=(1 22 333); echo ${#x} ${#a} ${#a[1]} ${#a[@]} ${#a[*]} ${#nosuch}
set -- a bb ccc; echo $# ${#} ${#@} ${#*} ${#1} ${#3}
