set -e; shopt -s inherit_errexit; x=$(false; echo b); echo never
