t=$(mktemp); trap 'rm -f "$t"; echo cleanup' EXIT; echo data > "$t"; cat "$t"; [[ -s $t ]] && echo nonempty; (exit 3); echo "rc $?"
