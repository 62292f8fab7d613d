"""Has CuPy and RMM tell memshim of each block that their pools give and take: read by sitecustomize.py when one of them was imported.

CuPy's pools call the hooks of a thread (cupy.cuda.MemoryHook); each thread gets one. RMM's call nobody, so a resource that cuts larger blocks is set
behind one of RMM's own adaptors that calls Python (CallbackMemoryResource), and who asks for the current resource gets what was set. Nothing is
done where memshim is not loaded.
"""
import ctypes
import functools
import threading


def memshim(name):
    """Functions that tell memshim of a block of the pool of that name: given, taken. Nothing lets go of the interpreter's lock on the way."""
    library = ctypes.PyDLL(None)
    library.memshim_pool.restype = ctypes.c_uint64
    library.memshim_pool.argtypes = [ctypes.c_char_p]
    library.memshim_inner_alloc.restype = library.memshim_inner_free.restype = None
    library.memshim_inner_alloc.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64]
    library.memshim_inner_free.argtypes = [ctypes.c_void_p]
    alloc, pool_of, free = library.memshim_inner_alloc, library.memshim_pool, library.memshim_inner_free
    pool_name = name.encode()

    def given(address, size):
        alloc(pool_of(pool_name), address, size)  # asked each time: a child of fork has pools of its own

    return given, free


def in_each_thread(begin):
    """Calls `begin` in this thread, and in each that Python begins from now on."""
    bootstrap = threading.Thread._bootstrap_inner

    @functools.wraps(bootstrap)
    def bootstrap_inner(self):
        try:
            begin()
        except Exception:
            pass
        bootstrap(self)

    begin()
    threading.Thread._bootstrap_inner = bootstrap_inner


def begin_cupy(cupy):
    given, taken = memshim("CuPy")

    class Hook(cupy.cuda.memory_hook.MemoryHook):
        name = "memshim"

        def malloc_postprocess(self, mem_ptr=0, mem_size=0, **_):
            if mem_ptr:
                given(mem_ptr, mem_size)

        def free_preprocess(self, mem_ptr=0, **_):  # before another thread may have it
            if mem_ptr:
                taken(mem_ptr)

    hook = Hook()
    in_each_thread(hook.__enter__)


CUTS = ("PoolMemoryResource", "ArenaMemoryResource", "BinningMemoryResource", "FixedSizeMemoryResource")
OUT_OF_MEMORY = "std::bad_alloc: out_of_memory: "


def begin_rmm(rmm):
    given, taken = memshim("RMM")
    resources = rmm.mr
    cuts = tuple(getattr(resources, name) for name in CUTS if hasattr(resources, name))
    logs = getattr(resources, "LoggingResourceAdaptor", ())  # which RMM itself looks for among those that were set

    class Watched(resources.CallbackMemoryResource):
        of = None  # the program's own

    def watched(resource):
        inner = resource
        while inner is not None and not isinstance(inner, cuts):
            inner = getattr(inner, "upstream_mr", None)
        if inner is None or isinstance(resource, Watched) or isinstance(resource, logs):
            return resource

        def allocate(size, stream):
            try:
                address = resource.allocate(size, stream)
            except MemoryError as error:  # the adaptor says once more that it is one
                raise MemoryError(str(error)[len(OUT_OF_MEMORY):] if str(error).startswith(OUT_OF_MEMORY) else str(error)) from None
            given(address, size)
            return address

        def deallocate(address, size, stream):
            taken(address)
            resource.deallocate(address, size, stream)

        adaptor = Watched(allocate, deallocate)
        adaptor.of = resource
        return adaptor

    set_per_device, get_per_device = resources.set_per_device_resource, resources.get_per_device_resource
    set_current, get_current = resources.set_current_device_resource, resources.get_current_device_resource

    def own(resource):
        return resource.of if isinstance(resource, Watched) else resource

    def replace(function, call):
        wrapper = functools.wraps(function)(call)
        for module in (rmm, resources, getattr(rmm, "rmm", None), getattr(getattr(rmm, "pylibrmm", None), "memory_resource", None)):
            if getattr(module, function.__name__, None) is function:
                setattr(module, function.__name__, wrapper)

    replace(set_per_device, lambda device, mr: set_per_device(device, watched(mr)))
    replace(set_current, lambda mr: set_current(watched(mr)))
    replace(get_per_device, lambda device: own(get_per_device(device)))
    replace(get_current, lambda: own(get_current()))
    reinitialize = rmm.reinitialize

    def reinitialize_watched(*args, **kwargs):
        reinitialize(*args, **kwargs)
        devices = kwargs.get("devices", args[4] if len(args) > 4 else 0)
        for device in [devices] if isinstance(devices, int) else devices or [0]:
            set_per_device(device, watched(get_per_device(device)))

    replace(reinitialize, reinitialize_watched)
