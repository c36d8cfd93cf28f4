set -e; ! false; echo a; ! true; echo b; (! true); echo never
