mkdir -p p/q; printf 'TODO: x\n' > p/a.py; printf 'ok\nTODO: y\n' > p/q/b.py; echo z > p/c.txt
find p -name '*.py' | sort | while IFS= read -r f; do n=$(grep -c TODO "$f"); echo "$f: $n"; done
find p -type f -name '*.py' -print0 | sort -z | while IFS= read -r -d '' f; do echo "[$f]"; done
grep -rn TODO p | sort | cut -d: -f1,2
total=0; while read -r n; do total=$((total+n)); done < <(find p -type f -exec wc -l {} \; | awk '{print $1}' 2>/dev/null || true); echo "$total" | grep -c '[0-9]'
