"""numba-cuda: arrays to the device and back, pinned, managed and mapped ones, on streams, with its own list of what it frees later; each against what the arrays say of
their sizes."""

import gc

import mark
import numpy as np
from numba import cuda


def flush():
    """What numba frees later is freed now."""
    gc.collect()
    cuda.current_context().memory_manager.deallocations.clear()


def copies(stream):
    """There and back."""
    array = np.arange(100000, dtype=np.float64)
    device = cuda.to_device(array, stream=stream)
    back = device.copy_to_host(stream=stream)
    stream.synchronize()
    assert back is not array and (back == array).all(), "the copy differs"
    again = cuda.device_array_like(array)
    again.copy_to_device(device, stream=stream)
    assert (again.copy_to_host(stream=stream) == array).all(), "the copy on the device differs"
    return device, again


def main():
    """Everything."""
    cuda.current_context()
    begin = mark.here()
    stream = cuda.stream()
    held = list(copies(stream))
    mark.live("two arrays", sum(array.nbytes for array in held), begin)
    for number in range(60):
        held.append(cuda.device_array((number + 1, 33), dtype=np.float32 if number % 2 else np.complex128))
        if number % 4 == 3:
            held.pop(2)
    flush()
    mark.live("many arrays", sum(array.nbytes for array in held), begin)
    mark.count("altogether", 62, begin)
    managed = cuda.managed_array(10000, dtype=np.int32)
    managed[:] = 7
    mark.live("with a managed one", sum(array.nbytes for array in held) + managed.nbytes, begin)
    with cuda.pinned(np.zeros(1000)), cuda.defer_cleanup():
        mapped = cuda.mapped_array(500, dtype=np.float32)
        mapped[:] = 3
        held.clear()
        assert cuda.current_context().get_memory_info().free > 0
    print(managed.nbytes, mapped.nbytes, int(managed.sum()), float(mapped.sum()))
    del managed, mapped
    flush()
    mark.live("at the end", 0, begin)


main()
