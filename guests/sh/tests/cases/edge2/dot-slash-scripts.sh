printf 'echo "args: $*"; exit 3\n' > s; chmod +x s; ./s a b; echo $?; PATH=$PWD:$PATH; s via-path; echo $?; cat > u <<'E'
#!/bin/bash -e
false
echo no
E
chmod +x u; ./u; echo $?; (s sub; echo "after $?"); x=$(s subst); echo "$? $x"; s p | cat; s bg & wait $!; echo $?; ./nonexec 2>/dev/null; echo $?; touch ne; ./ne 2>/dev/null; echo $?
