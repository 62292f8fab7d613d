"""RMM's resources from Python, over the simulated driver: what lives of them, by memshim, is what their statistics say, and errors are the same with memshim and without.

The static runtime in RMM refuses a simulated driver. A resource of Python's functions (CallbackMemoryResource) stands for `CudaMemoryResource`, and the number of the current
device is answered here. All else is RMM's own. The arena asks its runtime itself: it is for hardware.
"""
import ctypes
import sys

import inner
import mark
import rmm
import rmm.mr
from rmm.pylibrmm.memory_resource import _memory_resource

_memory_resource.getDevice = lambda: 0
runtime = ctypes.CDLL("libcudart.so.12")


def take(size, _):
    """Of the simulated driver."""
    address = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)):
        raise MemoryError("std::bad_alloc: out_of_memory: %d" % size)
    return address.value


def give(address, _size, _stream):
    """Likewise."""
    runtime.cudaFree(ctypes.c_void_p(address))


def look(resources, when):
    """A moment: what differs is printed."""
    if not inner.LIBRARY:
        return
    counts = [resource.allocation_counts for resource in resources]
    live, count, _, altogether = inner.figures(inner.snapshot(), "RMM")
    told = (live, count, altogether)
    own = (sum(one.current_bytes for one in counts), sum(one.current_count for one in counts), sum(one.total_bytes for one in counts))
    if told != own:
        print(when, "memshim", told, "and RMM's statistics", own)


def main():
    """Everything."""
    driver = rmm.mr.CallbackMemoryResource(take, give)
    makes = (lambda: rmm.mr.PoolMemoryResource(driver, 1 << 20, 1 << 24), lambda: rmm.mr.BinningMemoryResource(driver, 10, 20), lambda: rmm.mr.FixedSizeMemoryResource(driver, 1 << 16),
             lambda: rmm.mr.PoolMemoryResource(rmm.mr.LimitingResourceAdaptor(driver, 1 << 22), 1 << 20))
    resources, held = [], []
    mark.here()
    for make in makes:
        resource = rmm.mr.StatisticsResourceAdaptor(make())
        rmm.mr.set_current_device_resource(resource)
        assert rmm.mr.get_current_device_resource() is resource
        resources.append(resource)
        held.append([rmm.DeviceBuffer(size=1000 * size) for size in range(1, 40)])
        look(resources, "taken")
        del held[-1][::3]
        look(resources, "given")
        try:
            held[-1].append(rmm.DeviceBuffer(size=1 << 50))
        except (MemoryError, RuntimeError) as error:
            print(type(error).__name__, str(error)[:120])
        look(resources, "refused")
    rmm.mr.set_current_device_resource(driver)
    held.append([rmm.DeviceBuffer(size=1 << 20)])  # a block of the driver's, and none of a pool
    look(resources, "and the driver's")
    print(rmm.__version__, [resource.allocation_counts.current_bytes for resource in resources])
    sys.stdout.flush()
    held.clear()
    look(resources, "empty")


main()
