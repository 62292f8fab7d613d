"""cuda-bindings: the driver's calls as Python functions. Prints the bytes allocated at once; fails if anything is refused or
differs."""

import numpy as np
from cuda.bindings import driver


def call(function, *arguments):
    """What a call returns; it has to succeed."""
    status, *rest = function(*arguments)
    assert status == driver.CUresult.CUDA_SUCCESS, "%s: %s" % (function.__name__, status)
    return rest[0] if len(rest) == 1 else rest


call(driver.cuInit, 0)
device = call(driver.cuDeviceGet, 0)
call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, device))
stream = call(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
array = np.arange(100000, dtype=np.float64)
back = np.zeros_like(array)
for step in range(40):
    p = call(driver.cuMemAlloc, array.nbytes)
    q, pitch = call(driver.cuMemAllocPitch, 1000 + step, 10, 4)
    call(driver.cuMemsetD8Async, q, step, 10 * pitch, stream)
    call(driver.cuMemcpyHtoDAsync, p, array.ctypes.data, array.nbytes, stream)
    call(driver.cuMemcpyDtoHAsync, back.ctypes.data, p, array.nbytes, stream)
    call(driver.cuStreamSynchronize, stream)
    assert (back == array).all(), "the copy differs"
    base, size = call(driver.cuMemGetAddressRange, int(p) + 1000)
    assert (int(base), size) == (int(p), array.nbytes), "the range differs"
    call(driver.cuMemFree, q)
    call(driver.cuMemFree, p)
print(array.nbytes)
