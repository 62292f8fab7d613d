"""cumm: tensors to the device and back; each against what the tensors say of their sizes."""

import gc

import mark
import numpy as np
from cumm import tensorview as tv


def main():
    """Everything."""
    array = np.arange(100000, dtype=np.float64).reshape(100, 1000)
    begin = mark.here()
    device = tv.from_numpy(array).cuda()
    assert device.device == 0, "the tensor is not on the device"
    back = device.cpu().numpy()
    assert back is not array and (back == array).all(), "the copy differs"
    clone = device.clone()
    assert (clone.cpu().numpy() == array).all(), "the copy on the device differs"
    held = [device, clone, *(tv.zeros([n + 1, 77], tv.float32, 0) for n in range(50))]
    mark.live("bytesize of all", sum(tensor.bytesize() for tensor in held), begin)
    print(len(held), sum(tensor.bytesize() for tensor in held))
    held.clear()
    del device, clone
    gc.collect()
    mark.live("at the end", 0, begin)


main()
