coproc { read x; echo "got $x"; }; echo hi >&${COPROC[1]}; read y <&${COPROC[0]}; echo $y; wait $COPROC_PID; echo $?
coproc CAT { cat; }; echo abc >&${CAT[1]}; read z <&${CAT[0]}; echo $z; exec {CAT[1]}>&- 2>/dev/null; echo end
