s='hello world hello'
echo ${s/hello/bye} ${s//hello/bye} ${s/#hello/bye} ${s/%hello/bye} ${s//o} ${s//[aeiou]/_} ${s/l*o/X}
echo "${s// /
}"
p=a/b/c; echo ${p//\//-} ${p/\//} ${p////:}
e=; echo "[${e/x/y}]" "[${e/#/pre}]" "[${s/#/pre}]" "[${s/%/post}]"
t='a&b'; r='[&]'; echo ${t/a/$r} ${t/a/"$r"} ${t/a/\&} ${t//?/<&>}
