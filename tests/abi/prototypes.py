#!/usr/bin/env python3
"""Every row's signature, and every prototype of our own declarations, equals the vendor's.

The compiler is the judge: a translation unit includes the vendor's header, renames nothing, and declares each function
again as memshim has it; conflicting types are an error. The name, version and stream flag of a row are held against the
vendor's typedef of exactly that variant. Run by the harness; skipped where there is no CUDA toolkit.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import vendor  # noqa: E402

vendor.skip_without_toolkit()
FLAGS = ["-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-D_GNU_SOURCE", "-I" + vendor.TOP,
         "-I" + os.path.join(vendor.TOP, "src"), "-I" + os.path.join(vendor.CUDA, "include"), "-x", "c"]
DRIVER = """#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#define MEMSHIM_GPU_ABI_CUDA_DRIVER_H
#if CUDA_VERSION < 13010
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;
#endif
#if CUDA_VERSION < 13030
typedef CUresult (*CUgraphRecaptureCallback)(void *, CUgraphNode, const CUgraphNodeParams *, const CUgraphNodeParams *, int);
#endif
"""
RUNTIME = "#include <cuda_runtime_api.h>\n#undef cudaGetDeviceProperties\n"
DECLARE = """
#define MS_HOOK(result, symbol, parameters, ...) result symbol parameters;
#define MS_HOOK0(result, symbol, ...) result symbol(void);
#define MS_PASS(symbol, class, reason)
#include "hooks/table/%s"
"""


def compiles(source):
    """Whether it compiles, and the first lines of what the compiler says."""
    with tempfile.NamedTemporaryFile("w", suffix=".c", dir=os.environ["TEST_TMP"], delete=False) as file:
        file.write(source)
    run = subprocess.run(vendor.CC + FLAGS + [file.name], capture_output=True, text=True, check=False)
    return run.returncode == 0, [line for line in run.stderr.splitlines() if "error" in line or "note: previous" in line][:20]


def variants():
    """One assertion per row that can be asked for by name: the vendor's typedef of that version has the row's type."""
    text = "#include <cudaTypedefs.h>\n"
    known = open(os.path.join(vendor.CUDA, "include", "cudaTypedefs.h"), encoding="utf-8", errors="replace").read()
    known = set(re.findall(r"\bPFN_cu\w+_v\d+(?:_pt[sd][sz])?\b", known))
    absent, count = [], 0
    for symbol, (_, outcome, lookup) in sorted({**vendor.rows("cuda_driver.def"), **vendor.rows("cuda_status.def"), **vendor.rows("cuda_uses.def")}.items()):
        key = re.match(r'"\(\\"(\w+)\\", (\d+), ([01])\)"', lookup)
        if not key:
            continue
        name = "PFN_%s_v%s%s" % (key[1], key[2], symbol[-5:] if key[3] == "1" else "")
        if name not in known:
            absent.append("%s: no such variant, %s" % (symbol, name))
            continue
        count += 1
        text += '_Static_assert(__builtin_types_compatible_p(%s, __typeof__(&%s)), "%s");\n' % (name, symbol, symbol)
    return text, absent, count


tap = vendor.Tap(13)
passed, said = compiles(DRIVER + DECLARE % "cuda_driver.def")
tap.fact(passed, "driver: every row has the vendor's signature", said)
passed, said = compiles(DRIVER + DECLARE % "cuda_status.def")
tap.fact(passed, "driver: so has every row of what may lack memory", said)
passed, said = compiles(DRIVER + DECLARE % "cuda_uses.def")
tap.fact(passed, "driver: so has every row of what uses memory", said)
passed, said = compiles(DRIVER + '#include "vendor/abi/cuda_driver_fn.h"\n')
tap.fact(passed, "driver: every prototype of ours is the vendor's", said)
passed, said = compiles(RUNTIME + DECLARE % "cuda_runtime.def")
tap.fact(passed, "runtime: every row has the vendor's signature", said)
passed, said = compiles(RUNTIME + "#define MS_VENDOR_ABI_CUDA_RUNTIME_H\n" + '#include "vendor/abi/cuda_runtime_fn.h"\n')
tap.fact(passed, "runtime: every prototype of ours is the vendor's", said)
text, absent, count = variants()
passed, said = compiles(DRIVER + text)
tap.fact(passed, "driver: the name and version of a row are those of its variant", said)
tap.fact(not absent, "driver: every name and version is one of the vendor's", absent)
tap.fact(count >= 40, "driver: %d rows can be looked up" % count)
for name, source in (("row has", DECLARE % "nccl.def"), ("prototype of ours is", '#include "vendor/abi/nccl_fn.h"\n')):
    if not vendor.has_nccl():
        tap.skip("nccl: every %s the vendor's signature" % name, "no nccl.h in the toolkit")
        continue
    passed, said = compiles("#include <nccl.h>\n#define MEMSHIM_GPU_ABI_NCCL_H\n" + source)
    tap.fact(passed, "nccl: every %s the vendor's signature" % name, said)
if os.path.exists(os.path.join(vendor.CUDA, "include", "cupti.h")):
    passed, said = compiles("#include <cupti.h>\n#define MEMSHIM_GPU_ABI_CUPTI_H\n" + DECLARE % "cupti.def")
    tap.fact(passed, "CUPTI: every row has the vendor's signature", said)
else:
    tap.skip("CUPTI: every row has the vendor's signature", "no cupti.h in the toolkit")
passed, _ = compiles(DRIVER + "CUresult cuMemAlloc_v2(CUdeviceptr *dptr, unsigned int bytesize);\n")
tap.fact(not passed, "a wrong signature is caught")
