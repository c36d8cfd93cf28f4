echo hello | tr a-z A-Z | cut -c2-; printf '3\n1\n2\n' | sort | head -1; echo a | cat | cat | cat; true | false; echo $?; false | true; echo $?
set -o pipefail; false | true; echo $?; true | true; echo $?; set +o pipefail; false | true | (exit 3); echo ${PIPESTATUS[@]}
echo x | while read l; do y=$l; echo "in $y"; done; echo "out [$y]"; echo a b | { read p q; echo $q $p; }
! false | true; echo $?; yes | head -2; seq 100000 | tail -1
echo err >&2 2>/dev/null | cat; ls nosuchfile 2>&1 |& wc -l
f() { cat; }; echo func | f; echo g | if read x; then echo "if $x"; fi; for i in 1 2; do echo $i; done | cat
shopt -s lastpipe; echo last | read v; echo "[$v]"
