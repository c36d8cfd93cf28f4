echo a # comment
echo b#notcomment # c
# whole line
echo "# quoted"
echo ${x#y} # z
