f() { cat <<X
body $y
X
echo after; }
declare -f f
y=1; eval "$(declare -f f)"; f
