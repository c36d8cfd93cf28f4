f() { echo "exported fn $1"; }; export -f f; bash -c 'f x'; export -nf f; bash -c 'f x' 2>/dev/null; echo $?
