#!/usr/bin/env python3
"""hooks/submit.def says of every function of the driver whether it gives work to a stream, and where its stream is.

The names are held against the export list that the simulator has, everywhere; parameters, streams and lookup names against the vendor's
header and typedefs where a toolkit is installed.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import vendor  # noqa: E402

TEXT = open(os.path.join(vendor.TOP, "hooks", "submit.def"), encoding="utf-8").read()
ROW = re.compile(r'^MS_(SUBMIT|SUBMIT_OFF|MARK|STILL)\((\w+)(?:, (\d+), (?:"[^"]*"|(\w+)(?:, (\w+))?), \("(\w+)", (\d+), ([01])\))?\)$', re.M)
ROWS = {match[2]: match for match in ROW.finditer(TEXT)}
# A call with one of these words in its name moves, fills, runs or waits for something, as far as a name can tell.
VERB = re.compile(r"cu(?:Memcpy|Memset|Launch|GraphLaunch|\w+Async\b|\w+Async_|StreamW|Stream\w*Mem|StreamAdd|EventRecord)")
NO_WORK = {"cuMemcpy3DPeer_v0", "cuDeviceRegisterAsyncNotification", "cuDeviceUnregisterAsyncNotification"}
INVENTED = "CUresult CUDAAPI cuLaunchTensor(CUstream hStream);\n"


def exported():
    path = os.path.join(vendor.TOP, "src", "sim", "cuda", "exports.def")
    return set(re.findall(r"^X\((\w+)\)", open(path, encoding="utf-8").read(), re.M))


def parameters(text):
    text = text.strip()
    return [] if text in ("", "void") else [part.strip() for part in text.split(",")]


def by_register(parameter):
    """Passed as one word by both machines' conventions: a number, a pointer, a handle, a structure of eight bytes."""
    return "*" in parameter or not re.search(r"\b(?:float|double|CUipcMemHandle|CUipcEventHandle|struct)\b", parameter)


def header_facts(found):
    """What the header says otherwise than the rows."""
    wrong = []
    for symbol, row in sorted(ROWS.items()):
        if symbol not in found or row[1] not in ("SUBMIT", "SUBMIT_OFF"):
            continue
        words = parameters(found[symbol])
        streams = [i for i, word in enumerate(words) if re.search(r"\bCUstream\b(?!\s*\*)", word)]
        if len(words) != int(row[3]):
            wrong.append("%s has %d parameters, not %s" % (symbol, len(words), row[3]))
        if not all(by_register(word) for word in words):
            wrong.append("%s has a parameter that takes more than a word" % symbol)
        if row[1] == "SUBMIT" and row[4] not in (str(streams[0]) if streams else "DEFAULT", "CONFIG" if "CUlaunchConfig" in found[symbol] else "DEFAULT"):
            wrong.append("%s: its stream is not %s" % (symbol, row[4]))
        if row[1] == "SUBMIT" and streams and row[4] == "DEFAULT":
            wrong.append("%s: has a stream" % symbol)
    return wrong


def still_with_stream(found):
    """Functions with a stream that are said to submit nothing: they ask, or begin, end or destroy."""
    asks = re.compile(r"cuStream(?:Get|Set|Is|Copy|Query|Synchronize|Destroy|BeginCapture|EndCapture|UpdateCapture)")
    return [symbol for symbol, row in sorted(ROWS.items())
            if row[1] == "STILL" and re.search(r"\bCUstream\b(?!\s*\*)", found.get(symbol, "")) and not asks.match(symbol)]


def typedefs():
    text = open(os.path.join(vendor.CUDA, "include", "cudaTypedefs.h"), encoding="utf-8", errors="replace").read()
    return set(re.findall(r"\bPFN_cu\w+_v\d+(?:_pt[sd][sz])?\b", text))


def check(header):
    run = subprocess.run([os.path.join(vendor.TOP, "scripts", "check-submit"), header], capture_output=True, text=True, check=False,
                         env=dict(os.environ, CC=" ".join(vendor.CC)))
    return run.returncode, run.stderr.splitlines()


has_toolkit = bool(vendor.CUDA) and os.path.exists(os.path.join(vendor.CUDA, "include", "cuda.h"))
tap = vendor.Tap(10 if has_toolkit else 4)
names = exported()
tap.fact(len(names) > 600 and len(ROWS) == TEXT.count("\nMS_"), "%d rows can be read" % len(ROWS))
tap.fact(not names - set(ROWS), "every function that the driver exports is classified", sorted(names - set(ROWS)))
tap.fact(not set(ROWS) - names, "every row is one of them", sorted(set(ROWS) - names))
loud = [s for s, row in sorted(ROWS.items()) if row[1] == "STILL" and VERB.match(s) and s not in NO_WORK]
tap.fact(not loud, "nothing that by its name moves or runs something is said to be still", loud)
if has_toolkit:
    found = vendor.driver_prototypes()
    tap.fact(not header_facts(found), "parameters and streams are the header's", header_facts(found))
    tap.fact(not still_with_stream(found), "what has a stream and submits nothing asks about it, or ends it", still_with_stream(found))
    known = typedefs()
    absent = [s for s, row in sorted(ROWS.items()) if row[6] and not any(
        "PFN_%s_v%s%s" % (row[6], row[7], end) in known for end in (("_ptsz", "_ptds") if row[8] == "1" else ("",)))]
    tap.fact(not absent, "every lookup name and version is the vendor's", absent)
    header = os.path.join(vendor.CUDA, "include", "cuda.h")
    status, said = check(header)
    tap.fact(status == 0, "the build's check passes", said)
    other = os.path.join(os.environ["TEST_TMP"], "cuda.h")
    with open(other, "w", encoding="utf-8") as file:
        file.write(open(header, encoding="utf-8", errors="replace").read() + INVENTED)
    status, said = check(other)
    tap.fact(status != 0 and "cuLaunchTensor" in said, "a function of a newer toolkit stops the build", said)
    layout = "#include <cuda.h>\n_Static_assert(__builtin_offsetof(CUlaunchConfig, hStream) == 32 && sizeof(CUmemLocation) == 8, \"\");\n"
    run = subprocess.run(vendor.CC + ["-fsyntax-only", "-I" + os.path.join(vendor.CUDA, "include"), "-x", "c", "-"], input=layout, text=True,
                         capture_output=True, check=False)
    tap.fact(run.returncode == 0, "a launch's configuration has its stream where we look, and a place is one word", run.stderr.splitlines())
