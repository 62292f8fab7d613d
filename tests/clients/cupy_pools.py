"""CuPy's pool of memory over the simulated driver: what lives of it, by memshim, is `used_bytes()`, at each moment, with blocks that come and go in four threads.

The static runtime in `cupy_backends` refuses a simulated driver. The pool asks it for the number of the device and of devices alone, where its memory comes from functions of
Python: these two answers are put in its place before CuPy is imported. All else is CuPy's own.
"""
import ctypes
import random
import threading

import inner
import mark

kept = []


def answer(api, name, value):
    """The function of the Cython module returns that from now on, to those modules that are imported later."""
    of_capsule, to_capsule = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_New
    of_capsule.restype, of_capsule.argtypes = ctypes.c_char_p, [ctypes.py_object]
    to_capsule.restype, to_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    signature, function = of_capsule(api[name]), ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda _: value)
    kept.extend((signature, function))
    api[name] = to_capsule(ctypes.cast(function, ctypes.c_void_p), signature, None)


def memory():
    """Of the simulated driver."""
    runtime = ctypes.CDLL("libcudart.so.12")

    def take(size, _):
        address = ctypes.c_void_p()
        if runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)):
            raise MemoryError(size)
        return address.value

    def give(address, _):
        runtime.cudaFree(ctypes.c_void_p(address))

    return take, give


def look(pool, when):
    """A moment: what differs is printed."""
    if inner.LIBRARY:
        live = inner.figures(inner.snapshot(), "CuPy")[0]
        if live != pool.used_bytes():
            print(when, "memshim", live, "and used_bytes()", pool.used_bytes())


def work(pool, number, held):
    """Blocks come and go."""
    own, chance = [], random.Random(number)
    for _ in range(300):
        own.append(pool.malloc(chance.randrange(1, 1 << 20)))
        if len(own) > 30:
            del own[chance.randrange(len(own))]
    held.extend(own[::2])


def main():
    """Everything."""
    import cupy_backends.cuda.api.runtime as api
    answer(api.__pyx_capi__, "getDevice", 0)
    answer(api.__pyx_capi__, "getDeviceCount", 1)
    import cupy
    from cupy.cuda import memory as pools

    pool, held = pools.MemoryPool(pools.PythonFunctionAllocator(*memory()).malloc), []
    mark.here()
    for number in range(3):
        work(pool, number, held)
        look(pool, "alone")
        del held[::3]
        look(pool, "fewer")
    pool.free_all_blocks()
    look(pool, "trimmed")
    threads = [threading.Thread(target=work, args=(pool, number, held)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    look(pool, "after four threads")
    with cupy.cuda.memory_hooks.DebugPrintHook(file=open("/dev/null", "w", encoding="utf-8")):
        held.append(pool.malloc(5000))
    look(pool, "with a hook of the program's")
    print(cupy.__version__, pool.used_bytes(), len(held))
    held.clear()
    look(pool, "empty")
    pool.free_all_blocks()
    mark.live("the pool at the end", 0)


main()
