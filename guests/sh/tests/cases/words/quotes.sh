echo 'single $x `y` "z"' "double \$x \`y\` \"z\" \\ \n" plain\ space \'q\' ""'' a"b"c'd'e
echo "a
b" 'c
d'
echo a\
b
echo "a\
b"
