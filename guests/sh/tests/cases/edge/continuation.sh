echo a \
  b \
  c
x=1 \
y=2; echo $x$y; echo one &&
  echo two ||
  echo three
echo "multi
line" | \
cat
if true &&
   true; then
  echo ok
fi
