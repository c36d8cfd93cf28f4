seed = 12345
values = []
for _ in range(200000):
    seed = (seed * 1103515245 + 12345) % 2147483648
    values.append(seed)
ordered = sorted(values)
by_text = sorted(values[:60000], key=str)
pairs = sorted((value % 1000, value) for value in values)
