"""tinygrad, which calls the driver through ctypes: tensors to the device and back, its own cache switched off. Prints the bytes
allocated at once; fails if what comes back differs."""

import os

os.environ["LRU"] = "0"

import numpy as np  # noqa: E402
from tinygrad import Tensor  # noqa: E402

array = np.arange(200000, dtype=np.float32)
for step in range(40):
    some = array + step
    kept = Tensor(some, device="CUDA").realize()
    gone = Tensor(some[: 1000 * (step + 1)], device="CUDA").realize()
    assert (kept.numpy() == some).all(), "the copy differs"
    assert (gone.numpy() == some[: 1000 * (step + 1)]).all(), "the smaller copy differs"
    del gone
print(array.nbytes)
