bash -c 'echo $SHLVL' > a; echo $((SHLVL+1)) > b; cmp a b && echo same; (echo $SHLVL) | cmp - <(echo $SHLVL) && echo same2
