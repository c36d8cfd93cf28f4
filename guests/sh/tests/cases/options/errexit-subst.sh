set -e; echo $(false; echo still); x=$(echo a; false; echo b); echo "$x"; y=$(false); echo never
