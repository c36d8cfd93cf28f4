set -- -v -n 5 --long file
v=0 n=0; while getopts ':vn:-:' opt; do case $opt in v) v=1;; n) n=$OPTARG;; -) echo "long $OPTARG";; \?) echo "bad $OPTARG";; :) echo "missing $OPTARG";; esac; done; shift $((OPTIND-1)); echo "$v $n $*"
