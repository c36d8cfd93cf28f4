shopt -s extglob
x=aaabbb; echo ${x##+(a)} ${x%%+(b)} ${x//+(a)/A} ${x/@(a|b)/Z} ${x//!(a)/q}; y='  trim  '; echo "[${y##+( )}]" "[${y%%*( )}]"; [[ foo.tar.gz == *.@(tar.gz|zip) ]] && echo arch; case abc in a?(b)c) echo opt;; esac; case 123 in +([0-9])) echo num;; esac; z=a.b.c; echo ${z//@(.|b)/-}; [[ ab == a!(c) ]] && echo notc
