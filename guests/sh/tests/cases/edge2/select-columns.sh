printf '1\n' | { PS3='pick: '; select x in one two three; do echo "$x"; break; done; } 2>&1
