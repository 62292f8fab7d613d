"""Allocates by the CUDA runtime's own names, and forgets what it has: for tests/wheel/inside."""
import ctypes

runtime = ctypes.CDLL("libcudart.so.12")


def remember():
    """One mebibyte that nobody frees."""
    place = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(1 << 20)) == 0


for _ in range(3):
    remember()
