#!/usr/bin/env python3
"""Every memory function of the vendors' headers and libraries has a row; a new one in a newer version fails this.

Run by the harness. It looks at the CUDA toolkit, where there is one, and at the wheels of the newest runtimes, where scripts/fetch wheels has fetched
them; what is not there is skipped by name.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import vendor  # noqa: E402

# What later versions of NCCL have, by our own declarations.
with open(os.path.join(os.environ["top_srcdir"], "src/vendor/abi/nccl_later.h"), encoding="utf-8") as header:
    LATER = {prefix + name for name in re.findall(r"NCCL_BOTH\((\w+),", header.read()) for prefix in ("nccl", "pnccl")}
TABLES = {"driver": ("cuda_driver.def", "cuda_status.def", "cuda_uses.def"), "runtime": ("cuda_runtime.def",), "nccl": ("nccl.def",), "HIP": ("hip.def",)}
# Enough of each class must be found, or the parser has gone blind and the check means nothing.
KNOWN = {"driver": 185, "runtime": 118, "nccl": 32, "HIP": 140}
SAMPLES = {
    "driver": ("cuMemAlloc_v2", "cuMemFreeAsync_ptsz", "cuMulticastBindMem", "cuImportExternalMemory", "cuPointerGetAttribute"),
    "runtime": ("cudaMalloc", "cudaMallocFromPoolAsync_ptsz", "cudaIpcOpenMemHandle", "cudaFreeHost", "cudaDeviceReset"),
    "nccl": ("ncclMemAlloc", "pncclMemFree", "ncclCommWindowRegister", "pncclCommDeregister"),
    "HIP": ("hipMalloc", "hipFreeAsync", "hipIpcOpenMemHandle", "hipMemCreate", "hipDeviceReset"),
}
INVENTED = (
    ("cuMemAllocTensor", "CUdeviceptr *dptr, size_t bytes"), ("cuWeightsAcquire", "CUdeviceptr *dptr, int kind"),
    ("cudaMallocTiered", "void **p, size_t n, int tier"), ("cuMemPoolResize", "CUmemoryPool pool, size_t bytes"),
    ("cudaFreeBatchAsync", "void **p, size_t n"), ("cuCtxCreate_v9", "CUcontext *c"),
    ("ncclMemAllocOn", "void **p, size_t n, int device"), ("pncclCommWindowShare", "ncclComm_t comm"),
    ("hipMallocTiered", "void **p, size_t n, int tier"), ("hipLibraryGetGlobalOn", "void **dev_ptr, size_t *bytes"),
)


def cuda(root):
    """(part, functions) of a toolkit, or of a wheel, which has the runtime and the driver's header."""
    vendor.CUDA = root
    yield "driver", {**vendor.exports("stubs/libcuda.so"), **vendor.driver_prototypes()}
    yield "runtime", {**vendor.exports("libcudart.so.1[0-9]"), **vendor.runtime_prototypes()}
    if vendor.has_nccl():
        yield "nccl", {**vendor.exports("libnccl.so.2"), **vendor.nccl_prototypes()}


def compare(where, part, functions):
    """Four facts: memory functions of one part against the rows."""
    rows = {name for table in TABLES[part] for name in vendor.rows(table)}
    memory = {name for name, parameters in functions.items() if vendor.is_memory(name, parameters)}
    missing = sorted(memory - rows)
    name = "%s of %s" % (part, where)
    tap.fact(len(memory) >= KNOWN[part], "%s: at least %d memory functions are recognised (%d are)" % (name, KNOWN[part], len(memory)))
    tap.fact(all(sample in memory for sample in SAMPLES[part]), "%s: samples are among them" % name)
    tap.fact(not missing, "%s: every one has a row" % name, ["no row in hooks/table/%s: %s" % (" or ".join(TABLES[part]), m) for m in missing])
    if part == "HIP" or "12." in where: # rows are of several versions, and the header of the installed toolkit tells which
        return
    unknown = sorted(rows - set(functions) - LATER - vendor.ELSEWHERE)
    tap.fact(not unknown, "%s: every row is a function of the vendor's" % name, unknown)


TOOLKIT = [("the toolkit", vendor.CUDA)] if vendor.CUDA and os.path.exists(os.path.join(vendor.CUDA, "include", "cuda.h")) else []
WHEELS = [("CUDA " + v, r) for v, r in vendor.wheels("nvidia-cuda-runtime", "nvidia/cu13") + vendor.wheels("nvidia-cuda-runtime-cu12", "nvidia/cuda_runtime")]
HIPS = [("HIP " + v, r) for v, r in vendor.wheels("rocm-bindings-hip", "rocm/bindings")]
tap = vendor.Tap(None)
for place, root in TOOLKIT + WHEELS:
    for which, found in cuda(root):
        compare(place, which, found)
for place, root in HIPS:
    compare(place, "HIP", vendor.bound_prototypes(root))
for kind, there in (("the CUDA toolkit", TOOLKIT), ("wheels of CUDA's runtime (scripts/fetch wheels)", WHEELS), ("wheels of HIP's bindings (scripts/fetch wheels)", HIPS)):
    if not there:
        tap.skip("the memory functions of what is not here", kind)
caught = [name for name, parameters in INVENTED if vendor.is_memory(name, parameters)]
tap.fact(len(caught) == len(INVENTED), "functions that a newer version might bring are caught",
       sorted(set(n for n, _ in INVENTED) - set(caught)))
print("1..%d" % tap.number)
