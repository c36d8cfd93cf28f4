set -e; case a in a) true;; esac; for i in 1 2; do echo $i; done; for i in 1 2; do false; done; echo never
