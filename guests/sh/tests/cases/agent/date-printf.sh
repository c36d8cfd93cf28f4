printf '%(%F %T)T\n' 1700000000; printf '%(%a %b %e %j %U %V)T\n' 1700000000; printf -v d '%(%Y%m%d)T' 0; echo $d; printf '%(%s)T\n' 42; printf '%(%H)T|%(%M)T\n' 3600 60
