f() { caller; caller 0; g; }; g() { caller 1; }; f | sed 's#/.*#FILE#'; caller; echo $?
