mkdir -p a/b/c x; touch a/1 a/b/2 a/b/c/3; echo a/*; echo a/*/; echo */*; echo a/b/c/*; echo ./a/*; echo a/../a/*; echo a/[b]/*; echo {a,x}/*; cd a; echo ../*; echo */*/*; echo .*; echo .[!.]*
