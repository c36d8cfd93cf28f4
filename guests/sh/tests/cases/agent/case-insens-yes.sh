for a in y Y yes YES n No maybe; do case ${a,,} in y|yes) echo yes;; n|no) echo no;; *) echo "? $a";; esac; done; ans=Yes; [[ ${ans,,} =~ ^y(es)?$ ]] && echo ok
