printf 'alice,30,NYC\nbob,25,LA\ncarol,35,SF\n' > d.csv
while IFS=, read -r name age city; do printf '%-10s|%3d|%s\n' "$name" "$age" "$city"; done < d.csv
sort -t, -k2 -n d.csv | cut -d, -f1 | paste -sd' '; cut -d, -f3 d.csv | tr A-Z a-z | sort | uniq -c | sed 's/^ *//'
sum=0; while IFS=, read -r _ age _; do ((sum+=age)); done < d.csv; echo "avg $((sum/3))"
sed -n '2,3p' d.csv | sed 's/,/ | /g'; head -1 d.csv | tr ',' '\n' | nl | sed 's/^ *//'
declare -A by; while IFS=, read -r n a c; do by[$c]=$n; done < d.csv; for c in LA NYC SF; do echo "$c -> ${by[$c]}"; done
