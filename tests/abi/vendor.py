"""What the abi tests share: the vendor's prototypes, memshim's rows, and which functions are about memory.

A function is about memory if its name says so or if its parameters do. The patterns are wider than today's headers: a
function of a newer toolkit that allocates, frees, maps, shares, registers or reports memory must be caught by them, and
a function that is caught by mistake is named in NOT_MEMORY with the reason.
"""
import glob
import os
import re
import subprocess
import sys

TOP = os.environ["top_srcdir"]
CUDA = os.environ.get("TEST_CUDA_HOME", "")
CC = os.environ.get("TEST_CC", "cc").split()

NAME = re.compile(r"""^(?:cu|cuda|__cuda)(?:
    (?:Mem|Malloc|Free|Host)(?!cpy|set)\w*                  # allocation, pools, mapping, advice, registration
  | (?:Mipmapped)?Array(?:3D)?(?:Create|Destroy|GetMemory)\w*
  | (?:Free|Malloc)\w*
  | (?:Ipc)\w*Mem\w*
  | \w*(?:MemPool|GraphMem(?!cpy|set)|MemAllocNode|MemFreeNode|MemHandle|Mem[A-Z]\w*Async)\w*
  | \w*ExternalMemory\w*
  | Multicast\w*
  | Pointer\w*Attribute\w*
  | DeviceTotalMem\w* | \w*GetGlobal\w* | \w*GetManaged\w* | GetSymbol(?:Address|Size)
  | Graphics(?:Map|Unmap|SubResource|Resource\w*Mapped)\w*
  | StreamAttachMem\w*
  | Checkpoint\w*
  | Init(?:Device)? | DeviceReset | DeviceSynchronize | SetDevice
  | (?:Green)?Ctx(?:Create|Destroy|Attach|Detach|GetCurrent|SetCurrent|PushCurrent|PopCurrent|GetDevice|Synchronize|FromGreenCtx)\w*
  | DevicePrimaryCtx\w*
  | Event(?:Create|Destroy|Query|Record|Synchronize)\w*
  | Stream(?:Create|Destroy|Query|Synchronize|WaitEvent|BeginCapture|EndCapture|IsCapturing|GetCaptureInfo)\w*
  | GetProcAddress\w* | GetDriverEntryPoint\w* | GetExportTable
)$""", re.X)

# A pointer to one of these is where a call leaves memory, or a handle to it.
PARAMETER = re.compile(r"""\b(?:CUdeviceptr(?:_v\d)?|CUarray|CUmipmappedArray|CUmemoryPool|CUmemGenericAllocationHandle|
    CUexternalMemory|cudaArray_t|cudaMipmappedArray_t|cudaMemPool_t|cudaExternalMemory_t|cudaPitchedPtr)\s*\*""", re.X)

NOT_MEMORY = {
    # views of memory that exists, or of its attributes
    "cuArrayGetPlane": "a view of an array's plane", "cudaArrayGetPlane": "a view of an array's plane",
    "cuMipmappedArrayGetLevel": "a view of a level", "cudaGetMipmappedArrayLevel": "a view of a level",
    "cuTexRefGetAddress": "what a texture is bound to", "cuTexRefGetArray": "what a texture is bound to",
    "cuTexRefGetMipmappedArray": "what a texture is bound to", "cuSurfRefGetArray": "what a surface is bound to",
    "cuTexRefGetAddress_v2": "what a texture is bound to",
    "cuMemcpyBatchAsync": "a copy", "cuMemcpyBatchAsync_ptsz": "a copy",
    "cuMemcpy3DBatchAsync": "a copy", "cuMemcpy3DBatchAsync_ptsz": "a copy",
    "cuMemBatchDecompressAsync": "decompresses from one place to another",
    "cuGraphicsResourceSetMapFlags": "flags", "cudaGraphicsResourceSetMapFlags": "flags",
}

# What is about memory, by its name: wider than today's headers, as NAME is for CUDA.
HIP_NAME = re.compile(r"""^hip(?:
    (?:Ext)?(?:Mem|Malloc|Free|Host)(?!cpy|set)\w* | (?:Drv)?Pointer\w*Attribute\w*
  | (?:Mipmapped)?Array(?:3D)?(?:Create|Destroy) | IpcM?\w*Mem\w* | \w*MemPool\w* | \w*ExternalMemory\w* | \w*GraphMem(?!cpy|set)\w*
  | Graph\w*Mem(?:Alloc|Free)\w* | DeviceTotalMem | \w*Get(?:Global|Managed) | GetSymbol(?:Address|Size)
  | Graphics(?:Map|Unmap|SubResource|Resource\w*Mapped)\w* | StreamAttachMemAsync
  | Init | DeviceReset | DeviceSynchronize | SetDevice
  | Ctx(?:Create|Destroy|GetCurrent|SetCurrent|PushCurrent|PopCurrent|Synchronize) | DevicePrimaryCtx\w*
  | Event(?:Create|Destroy|Query|Record|Synchronize)\w*
  | (?:Ext)?Stream(?:Create|Destroy|Query|Synchronize|WaitEvent|BeginCapture|EndCapture|IsCapturing|GetCaptureInfo)\w*
  | Get(?:ProcAddress|DriverEntryPoint)\w*
)$""", re.X)
HIP_PARAMETER = re.compile(r"\b(?:hipArray|hipMipmappedArray_t|hipMemPool_t|hipMemGenericAllocationHandle_t|hipExternalMemory_t|hipDeviceptr_t)"
                       r"\s*\*\s*\*?|\bvoid\s*\*\s*\*\s*(?:ptr|dev)")
HIP_NOT_MEMORY = {
    "hipMipmappedArrayGetLevel": "a view of a level", "hipGetMipmappedArrayLevel": "a view of a level",
    "hipTexRefGetAddress": "what a texture is bound to", "hipTexRefGetArray": "what a texture is bound to",
    "hipTexRefGetMipMappedArray": "what a texture is bound to", "hipArrayGetInfo": "asks what an array is",
}
# Rows of functions that the vendor's newest versions have and older ones have not, or the other way round, and that no header tells the version of.
ELSEWHERE = {"cudaGetDeviceProperties_v2", "cudaMemAdvise_v2", "cudaMemPrefetchAsync_v2", "cudaMemPrefetchAsync_v2_ptsz", "cudaStreamGetCaptureInfo_v2",
             "cudaStreamGetCaptureInfo_v2_ptsz", "cudaStreamGetCaptureInfo_v3", "cudaStreamGetCaptureInfo_v3_ptsz", # until 12
             "cuMemGetLocationInfo", "cudaMemGetLocationInfo", "cuCheckpointOperationComplete", "cudaGreenCtxCreate", # since 13.4 and 13.1
             "hipExtHostAlloc", "hipExternalMemoryGetMappedMipmappedArray", # never exported by some
             # since 7.2, or 10
             "hipExecutionCtxStreamCreate", "hipGreenCtxCreate", "hipDeviceGetExecutionCtx", "hipExecutionCtxDestroy", "hipExecutionCtxSynchronize",
             "hipExecutionCtxRecordEvent", "hipExecutionCtxWaitEvent", "hipGetProcAddress_spt", "hipLibraryGetGlobal", "hipLibraryGetManaged",
             "hipMipmappedArrayGetMemoryRequirements", "hipMemSetMemPool", "hipMemGetMemPool", "hipMemGetDefaultMemPool", "hipMemDiscardBatchAsync",
             "hipMemPrefetchBatchAsync", "hipMemDiscardAndPrefetchBatchAsync", "hipDrvMemDiscardBatchAsync", "hipDrvMemDiscardAndPrefetchBatchAsync"}


def preprocess(source, *flags):
    """The text of a translation unit after the preprocessor."""
    command = CC + ["-E", "-P", "-D_GNU_SOURCE", "-I" + TOP, *flags, "-x", "c", "-"]
    return subprocess.run(command, input=source, text=True, check=True, capture_output=True).stdout


def prototypes(header, result, *defines):
    """name -> parameter text, for every function of a vendor header."""
    source = "".join("#define %s\n" % d for d in defines) + "#include <%s>\n" % header
    text = preprocess(source, "-I" + os.path.join(CUDA, "include"))
    found = re.findall(r"\b%s\s+((?:__)?cu\w+)\s*\(([^;{]*)\)\s*;" % result, text)
    return {name: parameters for name, parameters in found}


def driver_prototypes():
    return prototypes("cuda.h", "CUresult", "__CUDA_API_VERSION_INTERNAL")


def runtime_prototypes():
    plain = prototypes("cuda_runtime_api.h", "cudaError_t")
    # The twins for a default stream per thread have no prototype of their own; the header renames to them.
    text = open(os.path.join(CUDA, "include", "cuda_runtime_api.h"), encoding="utf-8", errors="replace").read()
    for name, suffix in re.findall(r"#\s*define\s+(cuda\w+)\s+__CUDART_API_(PTDS|PTSZ)\(", text):
        if name in plain:
            plain["%s_%s" % (name, suffix.lower())] = plain[name]
    return plain


NCCL_NAME = re.compile(r"""^p?nccl(?:
    \w*Mem\w* | \w*(?:Register|Deregister)\w* | \w*Window\w*
  | Comm(?:Init\w*|Split|Shrink|Grow|Finalize|Destroy|Abort|Revoke\w*)
)$""", re.X)


def has_nccl():
    return os.path.exists(os.path.join(CUDA, "include", "nccl.h"))


def nccl_prototypes():
    text = preprocess("#include <nccl.h>\n", "-I" + os.path.join(CUDA, "include"))
    found = re.findall(r"\bncclResult_t\s+(p?nccl\w+)\s*\(([^;{]*)\)\s*;", text)
    return {name: parameters for name, parameters in found}


def exports(library):
    """The names that a vendor's library exports, with no prototype: interop headers declare some, none declares others."""
    path = next((p for folder in ("lib64", "lib") for p in glob.glob(os.path.join(CUDA, folder, library))), None)
    if not path:
        return {}
    listing = subprocess.run(["nm", "-D", "--defined-only", path], text=True, check=True, capture_output=True).stdout
    names = re.findall(r"^[0-9a-f]+ [TW] ((?:__)?cu\w+|p?nccl\w+)", listing, re.M)
    return {name: "" for name in names}


def wheels(package, inside):
    """(version, root) of each of a vendor's wheels that scripts/fetch wheels has fetched."""
    return [(os.path.basename(path).rsplit("-", 1)[1], os.path.join(path, inside))
            for path in sorted(glob.glob(os.path.join(os.environ["TEST_CACHE"], "wheels", package + "-*"))) if os.path.isdir(os.path.join(path, inside))]


def bound_prototypes(root):
    """name -> parameters, of all functions that AMD's own bindings declare: that is HIP's whole header."""
    with open(os.path.join(root, "cyhip.pxd"), encoding="utf-8") as text:
        return dict(re.findall(r"^cdef hipError_t (hip\w+)\(([^)]*)\)", text.read(), re.M))


def is_memory(name, parameters):
    base = re.sub(r"_pt[sd][sz]$", "", name)
    if base in NOT_MEMORY or re.sub(r"_v\d$", "", base) in NOT_MEMORY:
        return False
    if re.match(r"p?nccl", name):
        return bool(NCCL_NAME.match(name))
    if name.startswith("hip"):
        return name not in HIP_NOT_MEMORY and "Memcpy" not in name and bool(HIP_NAME.match(name) or HIP_PARAMETER.search(parameters))
    return bool(NAME.match(name) or PARAMETER.search(parameters))


def rows(table):
    """Every row of a hooks/table/*.def: symbol -> (class, outcome, lookup)."""
    source = """#define MS_HOOK(result, symbol, parameters, arguments, class, outcome, lookup, ...) \\
        @row symbol class outcome #lookup@
#define MS_HOOK0(result, symbol, class, outcome, lookup, ...) @row symbol class outcome #lookup@
#define MS_PASS(symbol, class, reason) @row symbol class PASSED "-"@
#include "%s"
""" % os.path.join(TOP, "hooks", "table", table)
    text = preprocess(source)
    found = re.findall(r"@row (\w+) (\w+) (\w+) (\"(?:[^\"\\]|\\.)*\")\s*@", text)
    return {symbol: (kind, outcome, lookup) for symbol, kind, outcome, lookup in found if not is_later(lookup)}


def version_here():
    with open(os.path.join(CUDA, "include", "cuda.h"), encoding="utf-8", errors="replace") as header:
        return int(re.search(r"^#define CUDA_VERSION (\d+)", header.read(), re.M)[1])


def is_later(lookup):
    """Whether a row is of a later toolkit than the one that is here: nothing of it can be held against this one."""
    version = re.search(r", (\d+), [01]\)", lookup)
    return bool(CUDA and version) and int(version[1]) > version_here()


class Tap:
    """Counts and prints facts; how many there are it says first, unless that is not known then."""

    def __init__(self, planned):
        self.number = 0
        if planned is not None:
            print("1..%d" % planned)

    def fact(self, passed, name, details=()):
        self.number += 1
        print("%s %d - %s" % ("ok" if passed else "not ok", self.number, name))
        if not passed:
            for line in details:
                print("#   %s" % line)

    def skip(self, name, reason):
        self.number += 1
        print("ok %d - %s # SKIP %s" % (self.number, name, reason))


def skip_without_toolkit():
    if not CUDA or not os.path.exists(os.path.join(CUDA, "include", "cuda.h")):
        print("1..0 # SKIP no CUDA toolkit was found when this tree was configured")
        sys.exit(0)
