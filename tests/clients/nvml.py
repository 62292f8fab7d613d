"""nvidia-ml-py: what the management library says of devices and memory, beside what the driver says while a program allocates."""

import os

import mark
import pynvml
from cuda.bindings import driver


def call(function, *arguments):
    """What a call returns; it has to succeed."""
    status, *rest = function(*arguments)
    assert status == driver.CUresult.CUDA_SUCCESS, "%s: %s" % (function.__name__, status)
    return rest[0] if len(rest) == 1 else rest


def listed(handle):
    """What this process uses of the device, for each time that it is listed; others may be there too."""
    return [process.usedGpuMemory for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if process.pid == os.getpid()]


def main():
    """Everything."""
    pynvml.nvmlInit()
    call(driver.cuInit, 0)
    count = pynvml.nvmlDeviceGetCount()
    assert count == call(driver.cuDeviceGetCount)
    for index in range(count):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        device = call(driver.cuDeviceGet, index)
        name = call(driver.cuDeviceGetName, 100, device).split(b"\0")[0].decode()
        assert pynvml.nvmlDeviceGetName(handle) == name
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        print(index, name, pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetPciInfo(handle).busId, memory.total, pynvml.nvmlDeviceGetCudaComputeCapability(handle))
        print(index, "this process", listed(handle))
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, 0)))
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    begin = mark.here()
    before = listed(handle)[0]
    block = call(driver.cuMemAlloc, 256 << 20)
    mark.live("of the driver", 256 << 20, begin)
    print("used", listed(handle)[0] - before >= 256 << 20, len(listed(handle)), pynvml.nvmlDeviceGetMemoryInfo(handle).used >= listed(handle)[0])
    call(driver.cuMemFree, block)
    mark.live("afterwards", 0, begin)
    pynvml.nvmlShutdown()


main()
