import re

text = "On 2024-05-17 user42@example.com paid 129.99 EUR to shop-7 (ref AB-12345).\n" * 2000
dates = re.findall(r"(\d{4})-(\d\d)-(\d\d)", text)
mails = re.findall(r"[\w.]+@[\w.]+\.\w+", text)
words = re.sub(r"\b[a-z]+\b", "x", text)
for _ in range(3):
    found = [m.group(1) for m in re.finditer(r"ref ([A-Z]+-\d+)", text)]
