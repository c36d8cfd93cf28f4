p=/usr/local/lib/file.tar.gz
echo ${p#*/} ${p##*/} ${p%.*} ${p%%.*} ${p%/*} ${p#/usr} ${p%gz} ${p#nomatch}
x='a*b*c'; echo "${x#*\*}" "${x##*'*'}" "${x%\**}" "${x%%"*"*}"
y=aaaa; echo ${y#a*} ${y##a*} ${y%a} ${y%%a*} ${y#?} ${y%??}
z='[x]y'; echo ${z#[[]} ${z#\[} ${z#[!x]} ${z%[y]}
