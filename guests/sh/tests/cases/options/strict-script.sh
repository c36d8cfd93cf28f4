set -euo pipefail
IFS=$'\n\t'
usage() { echo "usage: $0 [-v] name" | sed 's#/.*/##'; }
main() {
  local verbose=0 name=${1:-world}
  while getopts v o; do case $o in v) verbose=1;; *) usage; return 2;; esac; done
  ((verbose)) && echo verbose
  echo "hello $name"
}
main "$@"
tmp=$(mktemp -d); trap 'rm -rf "$tmp"; echo cleaned' EXIT
printf 'b\na\nc\n' > "$tmp/f"; sort "$tmp/f" | while read -r l; do echo "- $l"; done
grep -q z "$tmp/f" || echo "no z"
count=$(wc -l < "$tmp/f"); echo "$count lines"
false
echo unreachable
