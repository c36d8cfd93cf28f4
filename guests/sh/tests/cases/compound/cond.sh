[[ a == a ]] && echo 1; [[ abc == a* ]] && echo 2; [[ abc == "a*" ]] || echo 3; [[ a != b ]] && echo 4; [[ a < b ]] && echo 5; [[ b > a ]] && echo 6; [[ -z "" && -n x ]] && echo 7; [[ 1 -lt 2 || x == y ]] && echo 8; [[ ! -e nosuch ]] && echo 9; [[ ( a == b ) || c == c ]] && echo 10
x='a b'; [[ $x == 'a b' ]] && echo 11; [[ -n $x ]] && echo 12; [[ $nosuch ]] || echo 13; [[ 3 -eq 1+2 ]] && echo 14; v=5; [[ v -gt 4 ]] && echo 15; [[ abc =~ ^a(b)(c)$ ]] && echo ${BASH_REMATCH[@]} ${#BASH_REMATCH[@]}; [[ foo123 =~ [0-9]+ ]] && echo ${BASH_REMATCH[0]}
re='^([a-z]+)-([0-9]+)$'; [[ foo-42 =~ $re ]] && echo ${BASH_REMATCH[1]} ${BASH_REMATCH[2]}; [[ a.c =~ a\.c ]] && echo 16; [[ abc =~ "a.c" ]] || echo 17; [[ abc =~ a.c ]] && echo 18; [[ "x y" =~ x\ y ]] && echo 19; [[ ab =~ (a|b)+ ]] && echo ${BASH_REMATCH[@]}
touch f; mkdir d; ln -s f l; [[ -f f && -d d && -L l && -e f && ! -s f && -r f && -w f ]] && echo files; [[ -v x ]] && echo set; [[ -v nosuch ]] || echo unset; a=(1 2); [[ -v a[1] ]] && echo el; [[ -o errexit ]] || echo noopt; [[ f -ef ./f ]] && echo ef
[[ a == @(a|b) ]] && echo ext; [[ abc == +([a-c]) ]] && echo ext2; [[ xyz == !(abc) ]] && echo ext3; [[ A == a ]] || echo case; shopt -s nocasematch; [[ A == a ]] && echo nocase; [[ ABC =~ b ]] && echo nocasere
[[ a == b ]]; echo $?; [[ x == x &&
  y == y ]] && echo multi
[[ $'a\nb' == *$'\n'* ]] && echo nl; [[ "a]b" == *]* ]] && echo br; [[ a-b =~ ^[a-z-]+$ ]] && echo dash; [[ "" =~ ^$ ]] && echo empty; [[ aaa =~ a{2} ]] && echo ${BASH_REMATCH}; [[ "foo bar" =~ ([^ ]+)\ (.*) ]] && echo "${BASH_REMATCH[2]}"
