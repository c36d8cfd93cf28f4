HOME=/h/u; echo ~ ~/x "~" '~' x~ ~nosuchuser a=~ ; x=~; echo $x; y=~/a:~/b; echo $y; PWD_=~+; [[ ~+ == $PWD ]] && echo same
