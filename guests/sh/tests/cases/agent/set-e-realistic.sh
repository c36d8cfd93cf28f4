set -euo pipefail
cleanup() { local rc=$?; echo "cleanup rc=$rc"; exit $rc; }; trap cleanup EXIT
require() { command -v "$1" >/dev/null 2>&1 || { echo "missing $1"; return 1; }; }
require ls; require nosuchtool || echo "continuing"
files=(*.none); echo "${#files[@]}"; for f in "${files[@]}"; do [[ -e $f ]] || continue; echo "$f"; done
x=$(grep -c foo /dev/null || true); echo "x=$x"; if ! grep -q foo /dev/null; then echo nofoo; fi
value=${UNSET_VAR:-default}; echo $value; arr=(); for a in ${arr[@]+"${arr[@]}"}; do echo no; done; echo "${#arr[@]}"
(( ${#files[@]} > 5 )) || echo few; [[ -n ${CI:-} ]] && echo ci; echo "before fail"; ls /nonexistent-dir 2>/dev/null | cat; echo unreachable
