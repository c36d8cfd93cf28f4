zz_a=1 zz_b='x y' zz_c=$'n\nl'; set | grep ^zz_; declare | grep ^zz_a; zz_arr=(1 "2 3"); set | grep ^zz_arr; declare -A zz_m=([a]=b); set | grep ^zz_m
