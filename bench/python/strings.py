parts = []
for i in range(150000):
    parts.append("item-%d" % i + ":" + str(i * 3).upper())
text = ",".join(parts)
words = text.split(",")
count = 0
for word in words:
    name, _, number = word.partition(":")
    if name.endswith("7") and number.startswith("2"):
        count += len(name.replace("item", "thing"))
text.count("99")
