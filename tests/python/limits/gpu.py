"""Device memory for the tests of this folder, by ctypes."""

import ctypes

runtime = ctypes.CDLL("libcudart.so.13")
kept = []


def allocate(size):
    """A block; the line that calls this is who allocates."""
    pointer = ctypes.c_void_p()
    status = runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
    assert status == 0
    return pointer


def free(block):
    """Gives it back."""
    assert runtime.cudaFree(block) == 0


class Owned:
    """A block that goes with its owner."""

    def __init__(self, size):
        self.block = allocate(size)

    def __del__(self):
        free(self.block)
