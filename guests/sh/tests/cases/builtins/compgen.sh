compgen -W 'apple apricot banana' ap; compgen -A builtin ech; compgen -b cd; f_x() { :; }; compgen -A function f_; touch zfile; compgen -f zf; v_xyz=1; compgen -v v_x; complete -W 'a b' cmd; echo $?
