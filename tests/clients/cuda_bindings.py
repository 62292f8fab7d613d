"""cuda-bindings: the driver's calls as Python functions; each of its allocations against a book of our own, with what a program plants found as its leak."""

import mark
import numpy as np
from cuda.bindings import driver


def call(function, *arguments):
    """What a call returns; it has to succeed."""
    status, *rest = function(*arguments)
    assert status == driver.CUresult.CUDA_SUCCESS, "%s: %s" % (function.__name__, status)
    return rest[0] if len(rest) == 1 else rest


def copies(stream):
    """There and back; how many bytes were asked for, altogether and at once (without what a pitch adds)."""
    array = np.arange(100000, dtype=np.float64)
    back = np.zeros_like(array)
    asked = 0
    for step in range(40):
        p = call(driver.cuMemAlloc, array.nbytes)
        q, pitch = call(driver.cuMemAllocPitch, 1000 + step, 10, 4)
        asked += array.nbytes + 10 * (1000 + step)
        call(driver.cuMemsetD8Async, q, step, 10 * pitch, stream)
        call(driver.cuMemcpyHtoDAsync, p, array.ctypes.data, array.nbytes, stream)
        call(driver.cuMemcpyDtoHAsync, back.ctypes.data, p, array.nbytes, stream)
        call(driver.cuStreamSynchronize, stream)
        assert (back == array).all(), "the copy differs"
        base, size = call(driver.cuMemGetAddressRange, int(p) + 1000)
        assert (int(base), size) == (int(p), array.nbytes), "the range differs"
        call(driver.cuMemFree, q)
        call(driver.cuMemFree, p)
    return asked, array.nbytes + 10 * (1000 + step)


def main():
    """Everything."""
    call(driver.cuInit, 0)
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, 0)))
    stream = call(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
    begin = mark.here()
    asked, most = copies(stream)
    mark.total("asked for", asked, begin)
    mark.count("allocations", 80, begin)
    mark.peak("at most", most, begin)
    kept = [call(driver.cuMemAllocAsync, 1000 * (n + 1), stream) for n in range(50)]
    mark.live("in stream order", 1000 * 50 * 51 // 2, begin)
    for p in kept[::2]:
        call(driver.cuMemFreeAsync, p, stream)
    mark.live("half of it", sum(1000 * (n + 1) for n in range(1, 50, 2)), begin)
    for p in kept[1::2]:
        call(driver.cuMemFreeAsync, p, stream)
    call(driver.cuStreamSynchronize, stream)
    managed = call(driver.cuMemAllocManaged, 123456, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value)
    mark.live("managed", 123456, begin)
    call(driver.cuMemFree, managed)
    mark.plant(54321)
    mark.leaks("planted", 54321)
    print("allocated", asked, "at most", most)


main()
