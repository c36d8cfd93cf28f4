set -- a b; for i in "x$@y"; do echo "<$i>"; done; set --; for i in "x$@y" "$@"; do echo "<$i>"; done; for i in "$@"; do echo never; done
f() { echo $#; }; f "$@"; f "$*"; f "" ""; f $nosuch; f "$nosuch"; f $nosuch"" 
