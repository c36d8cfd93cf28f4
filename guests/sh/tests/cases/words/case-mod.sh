s='hello World'; echo ${s^} ${s^^} ${s,} ${s,,} ${s^^[lo]} ${s,,W} ${s^h} ${s^^*}
u='ÀÉ ñ'; echo ${u,,} ${u^^}
