for i in 1 2; do cat <<E
item $i
E
done; while read x; do cat <<-E
	got $x
	E
done <<L
p
q
L
f() { while read -r l; do echo "f:$l"; done; }; f <<< $'a\nb'; cat <<A | sed 's/^/> /' | cat
one
two
A
x=$(cat <<E
in subst
E
); echo "$x"; cat <<'E' > file; cat file
literal $x
E
echo "$(cat <<E
quoted "inner" $((1+1))
E
)"
