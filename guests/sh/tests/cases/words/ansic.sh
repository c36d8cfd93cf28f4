printf '%s|' $'a\tb\nc' $'\x41\u00e9\101\'' $'\e[0m' $'a\\b' $"loc" $'\cA' | od -c | head -5
