alias ll='echo aliased' 2>/dev/null; ll 2>/dev/null; echo $?; shopt -s expand_aliases
ll x
alias a1='echo one ' a2=two; alias
a1 a2
unalias ll; alias ll 2>/dev/null; echo $?; alias loop='loop x'; loop 2>/dev/null; echo $?
alias foo='echo a; echo b'
foo c
alias if2='if true; then'
if2 echo x; fi
\foo 2>/dev/null; echo $?
alias e=echo; alias f='e e'
f
unalias -a; alias
