f() { echo f; }; function g { echo g; }; function h() { echo h; }; k() ( echo sub; x=1 ); l() if true; then echo l; fi; f; g; h; k; l; echo "[$x]"
foo-bar() { echo dash; }; foo-bar; a.b() { echo dot; }; a.b; function x:y { echo colon; }; x:y
f() { return 5; }; f; echo $?; f() { false; }; f; echo $?; f() { return; }; false; f; echo $?
f () { echo "$# $1 $2 $0"; } ; f 'a b' c | sed 's#/.*#NAME#'
f() { echo "$@"; } 2>/dev/null; f redirected; unset -f f; f 2>/dev/null; echo $?
