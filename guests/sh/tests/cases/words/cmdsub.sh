echo $(echo a; echo b) "$(echo a; echo b)" `echo c` "`echo "d e"`" $(echo $(echo nested $(echo deep)))
x=$(printf 'a\n\n\n'); echo "[$x]"; y=$(exit 3); echo $?
echo `echo \`echo inner\`` `echo '\$x'` "`echo \"q\"`"
echo $(case a in a) echo matched;; esac) $(if true; then echo t; fi)
f() { echo "fn $1"; }; echo $(f x) "$(f 'y z')"
echo "$(cat <<EOF
heredoc in sub
EOF
)"
echo file-content > ff; echo $(<ff) "$(< ff)"
echo $( # comment
echo x )
echo "$(echo ")")" $(echo ')')
