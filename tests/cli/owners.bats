#!/usr/bin/env bats
# memshim owners: whose the memory is, told by the innermost frame that is no runtime's
load "$TEST_HELPERS/common.bash"
load helpers

# owned REPORT SITE...: train.json with these sites in the place of its own, each "BYTES KIND DEVICE FRAME; ...", innermost frame
# first. A frame is "PATH FUNCTION" of a module, "python PATH FUNCTION", or a mark.
owned() {
    python3 - "$data/train.json" "$@" <<'END'
import json, os, sys
report, out, sites = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3:]
OWNERS = {"libcudart.so.12": "cuda_runtime", "libcuda.so.1": "cuda_driver", "libmemshim.so": "memshim", "libc.so.6": "libc", "libnccl.so.2": "nccl", "train": "program"}
report["modules"], report["frames"], report["stacks"], report["sites"] = [], [], [[0, -1]], []
places = {}

def frame_of(text):
    words = text.split(" ")
    if words[0] == "python":
        return {"kind": "python", "function": words[2], "file": words[1], "line": 1}
    if len(words) == 1:
        return {"kind": "mark", "mark": words[0]}
    if words[0] not in places:
        name = os.path.basename(words[0])
        owner = "python_extension" if ".cpython-" in name else OWNERS.get(name, "other")
        report["modules"].append({"id": len(places), "path": words[0], "generation": 0, "owner": owner})
        places[words[0]] = len(places)
    return {"kind": "native", "module": places[words[0]], "rel_pc": "0x10", "function": words[1]}

for number, text in enumerate(sites):
    size, kind, device, *rest = text.split(" ", 3)
    stack = 0
    for frame in reversed("".join(rest).split("; ") if rest else []):
        report["frames"].append(frame_of(frame))
        report["stacks"].append([stack, len(report["frames"]) - 1])
        stack = len(report["stacks"]) - 1
    row = dict(dict.fromkeys(("total_bytes", "live_bytes", "at_peak_bytes", "max_bytes"), int(size)), id=number, hash="%016x" % number, stack=stack,
               device=int(device), api="cudaMalloc", kind=kind, total_count=1, live_count=1, lifetime_ns_sum=0, rounding_bytes=0, size_hist={})
    report["sites"].append(row)
report["run"]["symbolized"] = True
report["leaks"], report["findings"], report["oom"], report["segments"] = [], [], [], []
json.dump(report, open(out, "w"))
END
}

# owner SITE: whose it is.
owner() {
    owned r.json "$1" && "$TEST_BIN" owners --json r.json | python3 -c 'import json, sys
rows = json.load(sys.stdin)["owners"]
assert len(rows) == 1, rows
print(rows[0]["owner"])'
}

main='/src/train main; /lib/libc.so.6 __libc_start_main'
runtime='/tmp/m/libmemshim.so cudaMalloc; /usr/local/cuda/lib64/libcudart.so.12 cudaMalloc'
package=/venv/lib/python3.11/site-packages

@test "the innermost frame that is no runtime's tells" {
    [ "$(owner "4096 device 0 $runtime; $main")" = program ]
    [ "$(owner "4096 device 0 $runtime; /src/libsolver.so grow; $main")" = program ]
    [ "$(owner "4096 device 0 $runtime; /usr/lib/x86_64-linux-gnu/libmpi.so.40 alloc; $main")" = libmpi ]
    [ "$(owner "4096 device 0 $runtime; /usr/lib/libcublas.so.12 create; $main")" = cuBLAS ]
    [ "$(owner "4096 device 0 $runtime; /usr/lib/libnccl.so.2 init; $main")" = NCCL ]
    [ "$(owner "4096 device 0 $runtime; /src/train std::vector<int>::resize(unsigned; /src/train main")" = program ]
    [ "$(owner "4096 device 0 /lib/libc.so.6 start_thread")" = unknown ]
    [ "$(owner "4096 device 0")" = unknown ]
}

@test "of Python: the program's file, the package, the extension, the framework" {
    [ "$(owner "4096 device 0 $runtime; /usr/lib/libpython3.11.so.1.0 eval; python /src/train.py step; $main")" = program ]
    [ "$(owner "4096 device 0 $runtime; /usr/lib/python3/dist-packages/_fast.cpython-311-x86_64-linux-gnu.so grow; $main")" = _fast ]
    [ "$(owner "4096 device 0 $runtime; $package/quick/core/_fast.cpython-311.so grow; python /src/train.py step")" = quick ]
    [ "$(owner "4096 device 0 $runtime; /src/_own.cpython-311.so grow; python /src/train.py step")" = _own ]
    [ "$(owner "4096 device 0 $runtime; /usr/lib/python3.11/lib-dynload/_ctypes.so call; python $package/quick/__init__.py make; python /src/train.py step")" = quick ]
    [ "$(owner "4096 device 0 $runtime; /usr/lib/python3.11/lib-dynload/_ctypes.so call; python $package/single.py make; python /src/train.py step")" = single ]
    [ "$(owner "4096 device 0 $runtime; $package/torch/lib/libc10_cuda.so alloc; $package/torch/lib/libtorch_cpu.so empty; python /src/train.py step")" = PyTorch ]
    [ "$(owner "4096 device 0 $runtime; python /usr/lib/python3.11/contextlib.py __enter__; python /src/train.py step")" = program ]
    [ "$(owner "4096 device 0 inferred; python /src/train.py step")" = program ]
}

@test "rows are added up by owner, kind and device, most at the peak first, host memory behind" {
    owned r.json "4096 device 0 $main" "8192 async 0 $main" "65536 pinned 0 $main" "16384 device 0 /usr/lib/libnccl.so.2 init" "4096 device 1 $main"
    try owners r.json
    [ "$status" -eq 0 ]
    [ "$(sed 1d out.txt | tr -s ' ')" = " 16.0 KiB 16.0 KiB 1 1 device 0 NCCL
 12.0 KiB 12.0 KiB 2 2 device 0 program
 4.0 KiB 4.0 KiB 1 1 device 1 program
 64.0 KiB 64.0 KiB 1 1 pinned program" ]
    try owners -n1 r.json
    [[ $out == *"... and 3 more" ]]
    try owners --json -n3 r.json
    python3 -c 'import json, sys
report = json.load(open("out.txt"))
assert report["left_out"] == 1 and report["live_bytes"] == 32768 and len(report["owners"]) == 3, report'
    try summary r.json
    grep -qx '    at its peak: NCCL 16.0 KiB, program 12.0 KiB' out.txt
    try owners r.json r.json
    grep -qE '^total +64.0 KiB +6  2 processes$' out.txt
    try owners
    refused 2 "no report given"
}

@test "a name that nobody can read is no owner" {
    owned r.json "4096 device 0 /usr/lib/$(printf 'x%.0s' $(seq 300)).so grow; $main"
    [ "$("$TEST_BIN" owners --json r.json | grep -c '"owner": "program"')" -eq 1 ]
}

@test "a program with a package: each has its own, and the rows add up to the device's" {
    need_plain
    mkdir -p "lib/python3/site-packages/quick"
    printf 'def make(driver, size):\n    import ctypes\n    p = ctypes.c_void_p()\n    assert driver.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(size)) == 0\n' \
        >lib/python3/site-packages/quick/__init__.py
    cat >app.py <<'END'
import ctypes
import quick
driver = ctypes.CDLL("libcuda.so.1")
context, p = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(3 << 20)) == 0
quick.make(driver, 5 << 20)
END
    PYTHONPATH=lib/python3/site-packages MEMSHIM_REPORT=r.json LD_PRELOAD=$TEST_LIB LD_LIBRARY_PATH=$TEST_SIM python3 app.py
    try owners --json r.json
    python3 - <<'END'
import json
report, told = json.load(open("r.json")), json.load(open("out.txt"))
held = {row["owner"]: row["live_bytes"] for row in told["owners"] if row["memory"] == "device"}
assert held == {"program": 3 << 20, "quick": 5 << 20}, held
assert sum(held.values()) == report["devices"][0]["live_bytes"], (held, report["devices"])
assert sum(row["at_peak_bytes"] for row in told["owners"] if row["memory"] == "device") == report["devices"][0]["peak_live_bytes"]
END
    "$TEST_BIN" symbolize -f r.json
    grep -q '"owner": *"quick"' r.json
    "$TEST_VALID" r.json
}
