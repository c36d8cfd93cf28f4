set -o noclobber; echo a > f; echo b > f 2>/dev/null; echo $?; cat f; echo c >> f; cat f; echo d >| f; cat f; echo x > /dev/null && echo devok
