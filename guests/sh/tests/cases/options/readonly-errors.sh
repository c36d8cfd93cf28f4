readonly r=1
r=2
echo "next $?"
r=3 true; echo $?
(r=4; echo no); echo $?
declare r=5; echo $?; export r=6; echo $?; read r <<< x; echo $?; for r in 1 2; do echo no; done; echo $?
echo end
