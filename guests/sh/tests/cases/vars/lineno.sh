echo $LINENO
echo $LINENO

f() {
  echo $LINENO
  echo ${BASH_LINENO[0]}
}
f
echo $LINENO
