for w in apple banana 'a b' '' '*' x1; do case $w in apple) echo fruit;; ban*|c*) echo ban;; 'a b') echo spaced;; '') echo empty;; \*) echo star;; x[0-9]) echo xnum;; *) echo other;; esac; done
case x in x) echo 1;& y) echo 2;; z) echo 3;; esac; case x in x) echo 1;;& *) echo 2;; esac
case a in (a) echo paren;; esac; case a in b) ;; esac; echo $?; case $(echo q) in q) echo subst;; esac
x='a*'; case 'abc' in $x) echo pattern;; esac; case 'abc' in "$x") echo no;; *) echo literal;; esac
case foo in
  foo)
    echo multi
    ;;
esac
case a in a) (exit 3);; esac; echo $?
