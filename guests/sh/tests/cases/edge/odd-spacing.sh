if true;then echo a;fi;for i in 1;do echo $i;done;while false;do :;done;f(){ echo f;};f;{ echo g;};(echo h);case a in a)echo i;esac
  echo    indented	tabs   ; echo a;echo b&&echo c||echo d
a=1;b=2;echo $a$b;((c=a+b));echo $c;[[ a == a ]]&&echo j;!	false&&echo k
