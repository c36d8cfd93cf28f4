cat > config.json <<'JSON'
{
  "name": "test",
  "items": [1, 2, 3]
}
JSON
cat config.json | grep -o '"name": "[^"]*"' | sed 's/.*: //; s/"//g'
mkdir -p src/{lib,bin,test}/deep && find src -type d | sort
for f in src/lib/{a,b,c}.txt; do echo "content of $(basename "$f" .txt)" > "$f"; done; cat src/lib/*.txt; wc -l < src/lib/a.txt
