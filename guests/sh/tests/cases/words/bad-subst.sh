echo ${x!}
echo next
