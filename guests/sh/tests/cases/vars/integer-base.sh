declare -i x=0x10; echo $x; x=2#101; echo $x; x=010; echo $x; y=0x10; echo $((y+1)); echo $((y = 5, y * 2)); let "z = 1 << 3"; echo $z
