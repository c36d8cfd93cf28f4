trim() { local s=$1; s="${s#"${s%%[![:space:]]*}"}"; s="${s%"${s##*[![:space:]]}"}"; printf '%s' "$s"; }
echo "[$(trim '   hi there  ')]"
join() { local IFS=$1; shift; echo "$*"; }; join , a b c
rep() { local o=; for ((i=0;i<$2;i++)); do o+=$1; done; echo "$o"; }; rep ab 3
IFS=. read -r a b c <<< 1.22.333; echo $((a*10000+b*100+c)); s="hello"; r=; for ((i=${#s}-1;i>=0;i--)); do r+=${s:i:1}; done; echo $r
v=1.2.3; echo "${v%%.*} ${v#*.} ${v##*.}"; [[ 2024-01-15 =~ ^([0-9]{4})-([0-9]{2})-([0-9]{2})$ ]] && echo "${BASH_REMATCH[3]}/${BASH_REMATCH[2]}/${BASH_REMATCH[1]}"
path=/a/b/c.tar.gz; echo "$(dirname $path) $(basename $path) ${path##*.} ${path%%.*}"; printf '%s\n' {a..c}{1..2} | paste -sd,; u=$(printf '%s' 'a b&c' | sed 's/ /%20/g; s/&/%26/g'); echo $u
