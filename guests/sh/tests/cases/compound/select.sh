printf '2\n' | { select x in a b c; do echo "chose $x $REPLY"; break; done 2>/dev/null; }
select x in a b; do echo never; done < /dev/null 2>/dev/null; echo "rc $?"
