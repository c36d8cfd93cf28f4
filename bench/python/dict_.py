counts = {}
for i in range(600000):
    key = i * 7919 % 50021
    counts[key] = counts.get(key, 0) + 1
inverse = {}
for key, value in counts.items():
    inverse.setdefault(value, []).append(key)
names = {str(key): value for key, value in counts.items()}
total = 0
for key in counts:
    total += names[str(key)]
