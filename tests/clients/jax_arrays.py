"""JAX: arrays to the device and back, on whichever allocator XLA_PYTHON_CLIENT_ALLOCATOR names; what memory_stats() says its pool holds (with the asynchronous one, what is
in use) is what is live.

Nothing is compiled: XLA compiles nothing without a cuDNN that works. JAX asks whether there is a device file of the vendor's before it loads the driver; on a machine without
hardware there is none, so this program answers for it. Its check of versions asks the profiling library, which needs hardware, and is left out by the variable that JAX has for that.
"""

import gc
import os

os.environ["JAX_PLATFORMS"] = "cuda"
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"

import jax  # noqa: E402
import mark  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import hardware_utils  # noqa: E402

hardware_utils.has_visible_nvidia_gpu = lambda: True
ASYNC = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR") == "cuda_async"


def held(device):
    """What the allocator says that it holds of the device's memory."""
    return device.memory_stats()["bytes_in_use" if ASYNC else "pool_bytes"]


def tell(device, name):
    """What there is, and its claim."""
    stats = device.memory_stats()
    print(name, stats["num_allocs"], stats["bytes_in_use"], stats["peak_bytes_in_use"], stats["largest_alloc_size"], held(device))
    mark.live(name, held(device))


def main():
    """Everything."""
    device = jax.devices()[0]
    print(device.device_kind, device.memory_stats()["bytes_limit"])
    tell(device, "before")
    arrays = [jax.device_put(np.arange(1000 * (number + 1), dtype=np.float32), device) for number in range(60)]
    arrays.append(jax.device_put(np.zeros((3000, 1000), dtype=np.float64), device))
    jax.block_until_ready(arrays)
    tell(device, "arrays")
    for array in arrays[::2]:
        array.delete()
    tell(device, "half of them")
    assert (np.asarray(arrays[1]) == np.arange(2000)).all(), "the copy differs"
    again = jax.device_put(arrays[3], device, may_alias=False)
    assert (np.asarray(again) == np.arange(4000)).all(), "the copy on the device differs"
    print(again.shape, again.dtype, again.nbytes)
    tell(device, "one more")
    del arrays, array, again
    gc.collect()
    tell(device, "none")
    if not ASYNC:
        mark.peak("peak_pool_bytes", device.memory_stats()["peak_pool_bytes"])
    if os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR") == "platform":
        mark.leaks("what the platform allocator never gives back", held(device))


main()
