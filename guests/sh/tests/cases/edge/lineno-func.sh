f() {
echo $LINENO
}
f; f
echo $LINENO; eval 'echo $LINENO'
echo "$(echo $LINENO)"; (echo $LINENO)
for i in 1 2; do
  echo $LINENO
done
