cat > gen.sh <<EOF
#!/bin/bash
echo "generated at \$1 by $USER"
for i in 1 2; do echo "line \$i"; done
EOF
bash gen.sh now; bash <<'S'
x=inner; echo "from $x"; exit 4
S
echo $?; sh -c 'echo "$1-$2"' _ a b; echo 'echo $((6*7))' | bash; bash -c "$(cat gen.sh)" _ later | head -1
