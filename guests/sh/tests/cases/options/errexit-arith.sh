set -e; ((1)); echo a; ((0)) || echo b; i=0; ((i++)) || true; echo c; ((0)); echo never
