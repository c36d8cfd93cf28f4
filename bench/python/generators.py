def numbers(n):
    i = 0
    while i < n:
        yield i
        i += 1

def squares(items):
    for item in items:
        yield item * item

def odd(items):
    return (item for item in items if item % 2)

total = 0
for _ in range(4):
    total += sum(odd(squares(numbers(200000))))
