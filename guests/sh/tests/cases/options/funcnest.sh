FUNCNEST=5; f() { echo $1; f $(($1+1)); }; f 1; echo "rc $?"
