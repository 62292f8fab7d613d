"""nvtx: ranges, marks and domains around the driver's calls of cuda-bindings, on several threads; every block inside of one against a book of our own."""

import threading

import mark
import nvtx
from cuda.bindings import driver


def call(function, *arguments):
    """What a call returns; it has to succeed."""
    status, *rest = function(*arguments)
    assert status == driver.CUresult.CUDA_SUCCESS, "%s: %s" % (function.__name__, status)
    return rest[0] if len(rest) == 1 else rest


@nvtx.annotate("step", color="green", domain="memory")
def step(number, live):
    """Allocates in a range inside of the range."""
    with nvtx.annotate("allocate %d" % number, category="allocator"):
        live.append((call(driver.cuMemAlloc, 4096 * (number + 1)), 4096 * (number + 1)))
    nvtx.mark("allocated", domain="memory", payload=number)


def work(context, live):
    """A thread."""
    call(driver.cuCtxSetCurrent, context)
    handle = nvtx.start_range("thread", domain="threads")
    for number in range(40):
        step(number, live)
        if number % 3 == 2:
            call(driver.cuMemFree, live.pop(0)[0])
    nvtx.end_range(handle)


def main():
    """Everything."""
    call(driver.cuInit, 0)
    context = call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, 0))
    call(driver.cuCtxSetCurrent, context)
    begin = mark.here()
    books = [[] for _ in range(4)]
    threads = [threading.Thread(target=work, args=(context, book)) for book in books]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    live = [block for book in books for block in book]
    mark.live("in all ranges", sum(size for _, size in live), begin)
    mark.count("allocations", 4 * 40, begin)
    for block, _ in live:
        call(driver.cuMemFree, block)
    mark.live("at the end", 0, begin)
    print("nvtx", nvtx.enabled(), len(live))


main()
