echo start
echo "unclosed
