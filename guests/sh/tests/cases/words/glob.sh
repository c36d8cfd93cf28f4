touch a.txt b.txt c.md .hidden; mkdir d e; touch d/x.txt
echo *.txt; echo *; echo ?.md; echo [ab].txt; echo [!a].txt; echo nomatch*; echo "*.txt" \*.txt '*'; echo */*.txt; echo d/*; echo .h*; echo */
shopt -s nullglob; echo [nomatch*]; echo x*; shopt -u nullglob; shopt -s dotglob; echo *; shopt -u dotglob
set -f; echo *.txt; set +f; x='*.txt'; echo $x "$x"; for f in *.txt; do echo "f=$f"; done
shopt -s globstar; mkdir -p s/t/u; touch s/1.q s/t/2.q s/t/u/3.q; echo **/*.q; echo s/**; shopt -u globstar
shopt -s extglob; echo !(a.txt) ; echo @(a|b).txt; echo +([a-c]).* ; echo ?(a).txt *(b).txt
shopt -s nocaseglob; echo A.TXT B*; shopt -u nocaseglob
echo [[:alpha:]].txt [a-b].txt [^a].txt
