trap 'echo "cmd: $BASH_COMMAND"' ERR; false; ls /nonexist 2>/dev/null; trap - ERR; f() { echo "$BASH_COMMAND"; }; f a b
