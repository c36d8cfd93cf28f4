"""What numpy and pandas take for common work, in milliseconds, the best of five: run it with both interpreters."""
import io
import time

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
square, million, ten_million = rng.random((500, 500)), rng.random(1_000_000), rng.random(10_000_000)
integers, out = rng.integers(0, 1 << 40, 1_000_000), np.empty(1_000_000)
frame = pd.DataFrame({"k": rng.integers(0, 1000, 1_000_000), "v": million})
right = pd.DataFrame({"k": np.arange(1000), "w": np.arange(1000.0)})
text = frame.head(200_000).to_csv(index=False)

WORK = {
    "matmul 500x500": lambda: square @ square,
    "sum of 10M": lambda: ten_million.sum(),
    "exp of 1M": lambda: np.exp(million, out=out),
    "fft of 2^18": lambda: np.fft.fft(million[: 1 << 18]),
    "add 1M": lambda: np.add(million, million, out=out),
    "multiply 1M": lambda: np.multiply(million, million, out=out),
    "sqrt of 1M": lambda: np.sqrt(million, out=out),
    "sort 1M floats": lambda: np.sort(million),
    "sort 1M integers": lambda: np.sort(integers),
    "inv 200x200": lambda: np.linalg.inv(square[:200, :200]),
    "normal 1M": lambda: rng.normal(size=1_000_000),
    "groupby sum of 1M rows": lambda: frame.groupby("k").v.sum(),
    "merge of 1M rows": lambda: frame.merge(right, on="k"),
    "read_csv of 200k rows": lambda: pd.read_csv(io.StringIO(text)),
}

for name, work in WORK.items():
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    print(f"{name:24} {best * 1000:9.2f}")
