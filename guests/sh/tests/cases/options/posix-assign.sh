x=1 : ; echo "[$x]"; set -o posix; x=2 : ; echo "[$x]"; x=3 export y=4; echo $x$y
