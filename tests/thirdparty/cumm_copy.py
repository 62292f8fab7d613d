"""cumm: a tensor to the device and back. Prints the bytes allocated; fails if what comes back differs."""

import numpy as np
from cumm import tensorview as tv

array = np.arange(100000, dtype=np.float64).reshape(100, 1000)
device = tv.from_numpy(array).cuda()
assert device.device == 0, "the tensor is not on the device"
back = device.cpu().numpy()
assert back is not array and (back == array).all(), "the copy differs"
assert (device.clone().cpu().numpy() == array).all(), "the copy on the device differs"
print(device.bytesize())
