"""numba-cuda: an array to the device and back. Prints the bytes allocated; fails if what comes back differs."""

import numpy as np
from numba import cuda

array = np.arange(100000, dtype=np.float64)
device = cuda.to_device(array)
back = device.copy_to_host()
assert back is not array and (back == array).all(), "the copy differs"
again = cuda.device_array_like(array)
again.copy_to_device(device)
assert (again.copy_to_host() == array).all(), "the copy on the device differs"
print(device.nbytes)
