"""Batches of several lengths in tinygrad, which keeps what is freed in a cache of its own: batches.py STEPS."""

import sys

import numpy as np
from tinygrad import Tensor

kept = []
for step in range(int(sys.argv[1])):
    length = 100000 + 90000 * ((step * 5) % 7)
    batch = Tensor(np.zeros(length, dtype=np.float32), device="CUDA").realize()
    labels = Tensor(np.zeros(length // 16, dtype=np.int32), device="CUDA").realize()
    kept.append(Tensor(np.zeros(length // 3, dtype=np.float32), device="CUDA").realize())
    if len(kept) > 5:
        kept.pop(step % 3)
