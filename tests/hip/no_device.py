"""Calls the real HIP runtime where there is no device, through its own handle and as a program that was linked with it, and prints every
status. What it prints must be the same with and without memshim."""
import ctypes

hip = ctypes.CDLL("libamdhip64.so.5", mode=ctypes.RTLD_GLOBAL)
program = ctypes.CDLL(None)
p, size, number = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_int(-7)
null, stream = ctypes.c_void_p(), ctypes.c_void_p()
CALLS = [
    ("hipInit", 0), ("hipGetDeviceCount", ctypes.byref(number)), ("hipGetDevice", ctypes.byref(number)), ("hipSetDevice", 0),
    ("hipRuntimeGetVersion", ctypes.byref(number)), ("hipMalloc", ctypes.byref(p), ctypes.c_size_t(100)), ("hipFree", null),
    ("hipMallocManaged", ctypes.byref(p), ctypes.c_size_t(100), 1), ("hipHostMalloc", ctypes.byref(p), ctypes.c_size_t(100), 0),
    ("hipHostFree", null), ("hipMallocAsync", ctypes.byref(p), ctypes.c_size_t(8), stream), ("hipFreeAsync", null, stream),
    ("hipMallocPitch", ctypes.byref(p), ctypes.byref(size), ctypes.c_size_t(10), ctypes.c_size_t(10)),
    ("hipMemGetInfo", ctypes.byref(size), ctypes.byref(size)), ("hipStreamCreate", ctypes.byref(stream)),
    ("hipDeviceSynchronize",), ("hipDeviceReset",), ("hipMemPtrGetInfo", null, ctypes.byref(size)),
    ("hipMemGetAddressRange", ctypes.byref(p), ctypes.byref(size), null), ("hipStreamSynchronize", stream),
]
for library, name in ((hip, "its own"), (program, "the program's")):
    for call in CALLS:
        status = getattr(library, call[0])(*call[1:])
        print(name, call[0], status, "last", hip.hipPeekAtLastError(), p.value, number.value)
