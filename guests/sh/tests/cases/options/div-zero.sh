echo $((1/0))
echo next $?
x=$((5%0))
echo "still $?"
((1/0)); echo $?; let 'a=1/0'; echo $?; [[ 1/0 -eq 1 ]]; echo $?
for i in 1 2; do echo $((i/0)); done; echo same line
echo end
