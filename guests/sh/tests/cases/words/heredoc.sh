x=val
cat <<EOF
a $x ${x} $(echo cmd) `echo bq` $((1+1)) \$x \\ "quoted" 'single'
	tab
EOF
cat <<'EOF'
a $x $(echo) \n
EOF
cat <<-EOF
	stripped
		more $x
	EOF
cat <<"A" <<B
first
A
second
B
cat <<EOF | tr a-z A-Z
piped
EOF
cat <<E1; cat <<E2
one
E1
two
E2
cat <<<"here string $x"; cat <<< 'a  b'; cat <<< $x$x
if true; then cat <<EOF
in if
EOF
fi
cat <<EOF
line \
continued
EOF
f() { cat <<EOF
in func $1
EOF
}
f arg
