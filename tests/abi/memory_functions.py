#!/usr/bin/env python3
"""Every memory function of the vendor's headers and libraries has a row; a new one in a newer toolkit fails this.

Run by the harness; needs a CUDA toolkit, and is skipped where there is none.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import vendor  # noqa: E402

vendor.skip_without_toolkit()
PARTS = (
    ("driver", ("cuda_driver.def", "cuda_status.def", "cuda_uses.def"), {**vendor.exports("stubs/libcuda.so"), **vendor.driver_prototypes()}),
    ("runtime", ("cuda_runtime.def",), {**vendor.exports("libcudart.so"), **vendor.runtime_prototypes()}),
)
if vendor.has_nccl():
    PARTS += (("nccl", ("nccl.def",), {**vendor.exports("libnccl.so.2"), **vendor.nccl_prototypes()}),)
# What later versions of NCCL have, by our own declarations.
with open(os.path.join(os.environ["top_srcdir"], "src/vendor/abi/nccl_later.h"), encoding="utf-8") as header:
    LATER = {prefix + name for name in re.findall(r"NCCL_BOTH\((\w+),", header.read()) for prefix in ("nccl", "pnccl")}
LATER.add("cudaGetDeviceProperties_v2") # of CUDA 12 alone
# Enough of each class must be found, or the parser has gone blind and the check means nothing.
KNOWN = {"driver": 195, "runtime": 121, "nccl": 32}
SAMPLES = {
    "driver": ("cuMemAlloc_v2", "cuMemFreeAsync_ptsz", "cuMulticastBindMem", "cuImportExternalMemory", "cuPointerGetAttribute"),
    "runtime": ("cudaMalloc", "cudaMallocFromPoolAsync_ptsz", "cudaIpcOpenMemHandle", "cudaFreeHost", "cudaDeviceReset"),
    "nccl": ("ncclMemAlloc", "pncclMemFree", "ncclCommWindowRegister", "pncclCommDeregister"),
}
INVENTED = (
    ("cuMemAllocTensor", "CUdeviceptr *dptr, size_t bytes"), ("cuWeightsAcquire", "CUdeviceptr *dptr, int kind"),
    ("cudaMallocTiered", "void **p, size_t n, int tier"), ("cuMemPoolResize", "CUmemoryPool pool, size_t bytes"),
    ("cudaFreeBatchAsync", "void **p, size_t n"), ("cuCtxCreate_v9", "CUcontext *c"),
    ("ncclMemAllocOn", "void **p, size_t n, int device"), ("pncclCommWindowShare", "ncclComm_t comm"),
)


tap = vendor.Tap(4 * len(PARTS) + 1)
for part, tables, functions in PARTS:
    rows = {name for table in tables for name in vendor.rows(table)}
    memory = {name for name, parameters in functions.items() if vendor.is_memory(name, parameters)}
    missing = sorted(memory - rows)
    tap.fact(len(memory) >= KNOWN[part], "%s: at least %d memory functions are recognised (%d are)" %
           (part, KNOWN[part], len(memory)))
    tap.fact(all(sample in memory for sample in SAMPLES[part]), "%s: samples are among them" % part)
    tap.fact(not missing, "%s: every one has a row" % part, ["no row in hooks/table/%s: %s" % (" or ".join(tables), m) for m in missing])
    unknown = sorted(rows - set(functions) - LATER)
    tap.fact(not unknown, "%s: every row is a function of the vendor's" % part, unknown)
caught = [name for name, parameters in INVENTED if vendor.is_memory(name, parameters)]
tap.fact(len(caught) == len(INVENTED), "functions that a newer toolkit might bring are caught",
       sorted(set(n for n, _ in INVENTED) - set(caught)))
