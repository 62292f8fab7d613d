"""tinygrad, which calls the driver through ctypes: tensors to the device and back, its own cache switched off. What its counter of memory in use says is what is live."""

import os

os.environ["LRU"] = "0"

import mark  # noqa: E402
import numpy as np  # noqa: E402
from tinygrad import Tensor  # noqa: E402
from tinygrad.helpers import GlobalCounters  # noqa: E402


def main():
    """Everything."""
    array = np.arange(200000, dtype=np.float32)
    Tensor(array[:10], device="CUDA").realize()
    mine, begin = GlobalCounters.mem_used, mark.here()
    held = []
    for step in range(40):
        some = array + step
        kept = Tensor(some, device="CUDA").realize()
        gone = Tensor(some[: 1000 * (step + 1)], device="CUDA").realize()
        assert (kept.numpy() == some).all(), "the copy differs"
        assert (gone.numpy() == some[: 1000 * (step + 1)]).all(), "the smaller copy differs"
        del gone
        if step % 8 == 7:
            held.append(kept)
            print(step, GlobalCounters.mem_used - mine)
            mark.live("mem_used", GlobalCounters.mem_used - mine, begin)
    print(array.nbytes, len(held))


main()
