"""The driver's memory for the stand-ins."""
import ctypes

runtime = ctypes.CDLL("libcudart.so.13")
runtime.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
runtime.cudaFree.argtypes = [ctypes.c_void_p]


def malloc(size):
    address = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(address), size):
        raise MemoryError("std::bad_alloc: out_of_memory: no memory for %d" % size)
    return address.value


class Segment:
    """Memory of which pieces of 512 bytes are given, the lowest first."""

    def __init__(self, size=8 << 20):
        self.size, self.address, self.given = size, malloc(size), {}

    def take(self, size):
        size, at = (size + 511) // 512 * 512, 0
        for begin in sorted(self.given):
            if begin - at >= size:
                break
            at = begin + self.given[begin]
        if at + size > self.size:
            raise MemoryError("std::bad_alloc: out_of_memory: no room for %d" % size)
        self.given[at] = size
        return self.address + at, size

    def give(self, address):
        del self.given[address - self.address]
