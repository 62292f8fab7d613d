#!/usr/bin/env python3
"""HIP's rows and our declarations against the vendor's headers, and every memory function of headers and library has a row.

The compiler is the judge, as in prototypes.py: the vendor's header is included, and each function is declared again as memshim has it.
The headers are Debian's 5.2.3 (scripts/fetch hip), or installed ones; skipped where there are none.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import vendor  # noqa: E402

CACHE = os.path.join(os.environ["TEST_CACHE"], "hip-5.2.3", "usr")
PREFIX = next((p for p in (CACHE, "/usr", "/opt/rocm") if os.path.exists(os.path.join(p, "include", "hip", "hip_runtime_api.h"))), None)
if not PREFIX:
    print("1..0 # SKIP HIP's headers are not here: scripts/fetch hip fetches them")
    sys.exit(0)

FLAGS = ["-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-D_GNU_SOURCE", "-D__HIP_PLATFORM_AMD__=1", "-I" + vendor.TOP,
         "-I" + os.path.join(vendor.TOP, "src"), "-isystem", os.path.join(PREFIX, "include"), "-x", "c"]
HEADER = "#include <stdbool.h>\n#include <hip/hip_runtime_api.h>\n#define MEMSHIM_GPU_ABI_HIP_H\n#define MS_HAVE_DIM3\n"
# What the header of 5.2 does not have yet.
LATER = """
#if HIP_VERSION < 60000000
typedef struct hipMemAllocNodeParams hipMemAllocNodeParams;
typedef enum hipDriverProcAddressQueryResult { A_FOUND } hipDriverProcAddressQueryResult;
typedef enum hipDriverEntryPointQueryResult { B_FOUND } hipDriverEntryPointQueryResult;
typedef void (*hipHostFn_t)(void *);
typedef struct hipGraphEdgeData hipGraphEdgeData;
typedef struct hipGraphNodeParams hipGraphNodeParams;
typedef struct hipGraphInstantiateParams hipGraphInstantiateParams;
typedef enum hipGraphMemAttributeType { C_FOUND } hipGraphMemAttributeType;
typedef struct hipDeviceProp_tR0600 hipDeviceProp_tR0600;
#define hipDeviceProp_tR0000 hipDeviceProp_t
#else
#undef hipGetDeviceProperties
#endif
#if HIP_VERSION < 50500000
typedef struct hipFunctionLaunchParams_t hipFunctionLaunchParams;
#endif
#if HIP_VERSION < 70200000
typedef struct hipExecutionCtx_st *hipExecutionCtx_t;
#endif
#if HIP_VERSION < 60500000
typedef struct hipLaunchConfig_st hipLaunchConfig_t;
typedef struct HIP_LAUNCH_CONFIG_st HIP_LAUNCH_CONFIG;
#endif
"""
DECLARE = """
#define MS_HOOK(result, symbol, parameters, ...) result symbol parameters;
#define MS_HOOK0(result, symbol, ...) result symbol(void);
#define MS_PASS(symbol, class, reason)
#include "hooks/table/hip.def"
"""


def compiles(source):
    """Whether it compiles, and what the compiler says."""
    with tempfile.NamedTemporaryFile("w", suffix=".c", dir=os.environ["TEST_TMP"], delete=False) as file:
        file.write(source)
    run = subprocess.run(vendor.CC + FLAGS + [file.name], capture_output=True, text=True, check=False)
    return run.returncode == 0, [line for line in run.stderr.splitlines() if "error" in line or "note: previous" in line][:20]


def prototypes():
    """name -> parameters, of the vendor's header."""
    command = vendor.CC + ["-E", "-P", "-D_GNU_SOURCE", "-D__HIP_PLATFORM_AMD__=1", "-I" + os.path.join(PREFIX, "include"), "-x", "c", "-"]
    text = subprocess.run(command, input=HEADER, text=True, check=True, capture_output=True).stdout
    return dict(re.findall(r"\bhipError_t\s+(hip\w+)\s*\(([^;{]*)\)\s*;", text))


def exports():
    """What the library exports, with no prototype."""
    for directory in ("lib/x86_64-linux-gnu", "lib"):
        path = os.path.join(PREFIX, directory, "libamdhip64.so.5")
        if os.path.exists(path):
            listing = subprocess.run(["nm", "-D", "--defined-only", path], text=True, check=True, capture_output=True).stdout
            return {name: "" for name in re.findall(r"^[0-9a-f]+ T (hip\w+)", listing, re.M)}
    return {}


def all_names():
    """Every name of every version, of the simulator's table."""
    text = open(os.path.join(vendor.TOP, "sim", "hip", "exports.def"), encoding="utf-8").read()
    return {name: "" for name in re.findall(r"^HIP_EXPORT\((hip[A-Z]\w+),", text, re.M)}


tap = vendor.Tap(9)
passed, said = compiles(HEADER + LATER + DECLARE)
tap.fact(passed, "every row has the vendor's signature", said)
passed, said = compiles(HEADER + LATER + '#include "vendor/abi/hip_fn.h"\n')
tap.fact(passed, "every prototype of ours is the vendor's", said)
passed, said = compiles(HEADER + LATER + "hipError_t hipMalloc(void **ptr, int size);\n")
tap.fact(not passed, "a wrong signature is caught")

CONSTANTS = """hipSuccess hipErrorInvalidValue hipErrorOutOfMemory hipErrorNotInitialized hipErrorInvalidDevicePointer hipErrorNoDevice
    hipErrorInvalidDevice hipErrorInvalidContext hipErrorInvalidHandle hipErrorNotFound hipErrorNotReady hipErrorIllegalAddress
    hipErrorLaunchFailure hipErrorNotSupported hipErrorStreamCaptureUnsupported hipErrorStreamCaptureInvalidated hipErrorUnknown
    hipMemcpyDefault hipMemcpyDeviceToDevice HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR
    HIP_POINTER_ATTRIBUTE_RANGE_SIZE HIP_POINTER_ATTRIBUTE_BUFFER_ID HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
    hipMemLocationTypeDevice hipMemAllocationTypePinned hipMemHandleTypePosixFileDescriptor
    hipMemAccessFlagsProtReadWrite hipMemPoolAttrReleaseThreshold hipMemPoolAttrUsedMemHigh hipStreamNonBlocking
    hipEventDisableTiming hipHostMallocCoherent hipDeviceAttributeManagedMemory hipDeviceAttributeWarpSize
    hipDeviceAttributeMemoryPoolsSupported hipStreamCaptureStatusActive hipStreamCaptureModeRelaxed""".split()
LAYOUTS = {
    "hipPointerAttribute_t": "device devicePointer hostPointer isManaged allocationFlags", "hipPitchedPtr": "ptr pitch xsize ysize",
    "hipExtent": "width height depth", "hipChannelFormatDesc": "x y z w f", "HIP_ARRAY_DESCRIPTOR": "Width Height Format NumChannels",
    "HIP_ARRAY3D_DESCRIPTOR": "Width Height Depth Format NumChannels Flags", "hipMemLocation": "type id", "hipMemAccessDesc": "location flags",
    "hipMemPoolProps": "allocType handleTypes location win32SecurityAttributes",
    "hipMemPoolPtrExportData": "reserved", "hipIpcMemHandle_t": "reserved", "hipUUID": "bytes",
}


def values(header, later, props):
    """What a program that is compiled with this header prints of constants and layouts."""
    lines = [f'printf("{c} %lld\\n", (long long)({c}));' for c in CONSTANTS]
    for name, fields in LAYOUTS.items():
        lines.append(f'printf("{name} %zu", sizeof({name}));')
        lines += [f'printf(" %zu", offsetof({name}, {field}));' for field in fields.split()]
        lines.append('puts("");')
    old = "hipMemAllocationProp5" if props else "hipMemAllocationProp"
    lines.append(f'printf("prop %zu %zu %zu %zu\\n", sizeof({old}), offsetof({old}, type), offsetof({old}, location), offsetof({old}, requestedHandleType));')
    device = "hipDeviceProp_tR0000" if props else "hipDeviceProp_t"
    fields = "totalGlobalMem warpSize maxThreadsPerBlock totalConstMem multiProcessorCount arch concurrentKernels pciBusID gcnArchName".split()
    lines.append(f'printf("device %zu", sizeof({device}));')
    lines += [f'printf(" %zu", offsetof({device}, {field}));' for field in fields] + ['puts("");']
    source = f"#include <stdio.h>\n#include <stddef.h>\n{header}{later}int main(void) {{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
    path = os.path.join(os.environ["TEST_TMP"], "values_" + ("ours" if props else "theirs"))
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write(source)
    include = [f for f in FLAGS if f not in ("-fsyntax-only", "-x", "c", "-Wall", "-Werror")]
    made = subprocess.run(vendor.CC + include + ["-o", path, path + ".c"], capture_output=True, text=True, check=False)
    if made.returncode:
        return made.stderr.splitlines()[:10]
    return subprocess.run([path], capture_output=True, text=True, check=True).stdout.splitlines()


VERSION = int(re.search(r"HIP_VERSION_MAJOR\s+(\d+)", open(os.path.join(PREFIX, "include", "hip", "hip_version.h"), encoding="utf-8").read())[1])
if VERSION == 5:
    ours, theirs = values('#include "vendor/abi/hip.h"\n', "", True), values(HEADER, "", False)
    tap.fact(ours == theirs and len(ours) > 50, "constants and layouts of 5 are the vendor's",
             [f"ours {a!r}, theirs {b!r}" for a, b in zip(ours, theirs) if a != b])
else:
    tap.fact(True, "constants and layouts of 5 are the vendor's # SKIP the headers are of another version")

rows = vendor.rows("hip.def")
functions = {**exports(), **prototypes()}
memory = {name for name, parameters in functions.items() if vendor.is_memory(name, parameters)}
missing = sorted(memory - set(rows))
tap.fact(len(memory) >= 115, "at least 115 memory functions are recognised (%d are)" % len(memory))
tap.fact(not missing, "every one has a row", ["no row in hooks/table/hip.def: " + m for m in missing])
named = {name for name in all_names() if vendor.is_memory(name, "")}
missing = sorted(named - set(rows))
tap.fact(not missing, "so has every one of the later versions' exports", missing)
unknown = sorted({row for row in rows if row.startswith("hip")} - set(functions) - set(all_names()) - vendor.ELSEWHERE)
tap.fact(not unknown, "every row is a function of the vendor's", unknown)
invented = ("hipMemAllocTensor", "hipMallocTiered", "hipMemPoolResize", "hipFreeBatchAsync", "hipIpcOpenMemHandle_v2", "hipStreamCreateEx")
tap.fact(all(vendor.is_memory(name, "") for name in invented), "functions that a newer version might bring are caught",
         [name for name in invented if not vendor.is_memory(name, "")])
