"""A program with the stand-ins of CuPy and RMM: prints what its pools say. pools.py cupy, rmm, reinitialized, types or seen."""
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_in"))


def with_cupy():
    import cupy
    held, seen = [], []

    def work(number):
        own = [cupy.pool.malloc(100 + 700 * step + number) for step in range(40)]
        for block in own[::2]:
            block.free()
        held.extend(own[1::2])

    class Counts(cupy.cuda.MemoryHook):  # the program's own hook goes on
        name = "counts"

        def malloc_postprocess(self, **kwargs):
            seen.append(kwargs["mem_size"])

    with Counts():
        work(0)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for block in held[:10]:
        block.free()
    print(cupy.pool.used_bytes(), len(held) - 10, len(seen))


def with_rmm(reinitialized):
    import rmm
    if reinitialized:
        rmm.reinitialize(pool_allocator=True)
    pool = rmm.mr.get_current_device_resource() if reinitialized else rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource())
    statistics = rmm.mr.StatisticsResourceAdaptor(pool)
    rmm.mr.set_current_device_resource(statistics)
    buffers = [rmm.DeviceBuffer(1000 * size) for size in range(1, 30)]
    for buffer in buffers[::3]:
        buffer.free()
    try:
        rmm.DeviceBuffer(1 << 40)
    except MemoryError as error:
        print(type(error).__name__, error, error.__cause__)
    print(statistics.current_bytes, len(buffers) - len(buffers[::3]), statistics.peak_bytes, statistics.total_bytes)


def types():
    """Nobody finds anything else than without memshim."""
    import rmm
    for resource in (rmm.mr.CudaMemoryResource(), rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource())):
        rmm.mr.set_current_device_resource(resource)
        print(rmm.mr.get_current_device_resource() is resource, rmm.mr.get_per_device_resource(0) is resource, rmm.mr.set_current_device_resource.__name__)
        rmm.mr.set_per_device_resource(0, rmm.mr.get_current_device_resource())
    print(type(rmm.mr.get_current_device_resource()).__name__, type(rmm.__loader__).__name__, rmm.__spec__.loader is rmm.__loader__, vars(rmm.__loader__).keys())


def seen():
    """Of the interpreter."""
    print(sys.path[1:3], "sitecustomize" in sys.modules, [name for name in sorted(sys.modules) if "memshim" in name or "startup" in name])
    print(sorted(name for name in sys.modules if name in ("ctypes", "threading", "json", "importlib.util")) if len(sys.argv) < 3 else "")
    print(subprocess.run([sys.executable, __file__, "seen", "child"], check=True, capture_output=True, text=True).stdout if len(sys.argv) < 3 else "")


ways = {"cupy": with_cupy, "rmm": lambda: with_rmm(False), "reinitialized": lambda: with_rmm(True), "types": types, "seen": seen}
ways[sys.argv[1]]()
