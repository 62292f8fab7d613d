"""What PyTorch says of its own memory, for the torch_*.py clients: reserved where it caches, every storage where it does not; and what the simulated driver counted.

cuBLAS has a workspace of its own for each handle, of which PyTorch knows nothing; a thread that multiplies has a handle, and handles stay to the end of the process.
"""
import collections
import ctypes
import gc
import os

import torch

HANDLE_BYTES = 32 << 20  # cuBLAS documentation, "cublasSetWorkspace": from compute capability 9.0 on
CALLS = ("cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap",
         "cuMemSetAccess", "cuMemAddressReserve", "cuMemAddressFree")  # fmt: skip


def caching():
    """Whether PyTorch keeps freed memory by itself, which it then calls reserved."""
    return not os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") and torch.cuda.get_allocator_backend() == "native"


def storages_of(tensors):
    """Address and size of each storage on a device; one is one block where nothing is cached."""
    found = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t.is_cuda}
    found.pop(0, None)
    return found


def storages():
    """Of all tensors that Python lists, and of their gradients, which it does not."""
    tensors = [thing for thing in gc.get_objects() if type(thing) in (torch.Tensor, torch.nn.Parameter)]
    return storages_of(tensors + [t.grad for t in tensors if t.is_leaf and t.grad is not None])


class Saved:
    """While it is open: the storages that autograd keeps for the backward pass, which Python does not list either. Only what it says of them is kept, so they go as ever."""

    def __init__(self):
        self.storages = found = {}

        def pack(tensor):
            found.update(storages_of([tensor]))
            return tensor

        self.hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)

    def __enter__(self):
        self.hooks.__enter__()
        return self

    def __exit__(self, *what):
        return self.hooks.__exit__(*what)


def live(handles, saved=None):
    """Bytes that are live, with these many handles of cuBLAS's. Workspaces that PyTorch gives cuBLAS are storages of which nothing tells: where they count, they are given up first."""
    if caching():
        return torch.cuda.memory_reserved() + handles * HANDLE_BYTES
    torch._C._cuda_clearCublasWorkspaces()
    return sum({**storages(), **(saved.storages if saved else {})}.values()) + handles * HANDLE_BYTES


def segments():
    """(bytes, how many) of the segments in PyTorch's snapshot; their sum is what it calls reserved."""
    if not caching():
        return []
    sizes = [segment["total_size"] for segment in torch.cuda.memory_snapshot()]
    assert sum(sizes) == torch.cuda.memory_reserved(), "the snapshot's segments are not what is reserved"
    return sorted(collections.Counter(sizes).items())


def counters():
    """What PyTorch counts as allocated and reserved, once all work is over; the driver's pool reserves by the moment at which work ends, so that figure is left out."""
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved() if caching() else "-"


def forget():
    """Gives up all that PyTorch keeps."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def measure():
    """Tells what the driver was asked, and what of the device was taken at most (MEMSIM_COUNT=1)."""
    count = ctypes.CDLL("libcuda.so.1").memsim_count
    count.restype = ctypes.c_longlong
    counted = {name: count(name.encode()) for name in (*CALLS, "peak_bytes")}
    own = torch.cuda.max_memory_reserved() >> 20 or "-"
    print("note measure calls=%d peak_MiB=%d own_peak_MiB=%s" % (sum(counted[name] for name in CALLS), counted["peak_bytes"] >> 20, own), flush=True)
