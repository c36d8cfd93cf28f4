import json

data = {"rows": [{"id": i, "name": "name %d" % i, "tags": ["a", "b"], "score": i / 7} for i in range(4000)]}
for _ in range(10):
    text = json.dumps(data)
    data = json.loads(text)
