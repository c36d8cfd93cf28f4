set -e; [[ a == a ]]; echo a; [[ a == b ]] || echo b; [[ a == b ]]; echo never
