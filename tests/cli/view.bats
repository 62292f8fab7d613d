#!/usr/bin/env bats
# What the rows of a listing are (run.view), told by who called, and what a framework's cache still holds: no leak
load "$TEST_HELPERS/common.bash"
load helpers

# called REPORT SITE...: train.json with these sites in the place of its own, each "BYTES DEVICE MODULE FUNCTION; ...", innermost
# frame first. Module libpython... is the interpreter's, function - is a frame without a name; a device of -1 is host memory. All
# of it is left.
called() {
    python3 - "$data/train.json" "$@" <<'END'
import json, sys
report, out, sites = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3:]
report["modules"], report["frames"], report["stacks"] = [], [], [[0, -1]]
places, rows = {}, []
for number, text in enumerate(sites):
    size, device, rest = text.split(" ", 2)
    stack = 0
    for frame in reversed(rest.split("; ")):
        path, function = frame.split(" ", 1)
        if path not in places:
            places[path] = len(places)
            owner = "python" if path.startswith("libpython") else "other"
            report["modules"].append({"id": places[path], "path": "/lib/" + path, "generation": 0, "owner": owner})
        row = {"kind": "native", "module": places[path], "rel_pc": "0x10"}
        if function != "-":
            row["function"] = function
        report["frames"].append(row)
        report["stacks"].append([stack, len(report["frames"]) - 1])
        stack = len(report["stacks"]) - 1
    size = int(size)
    row = dict(report["sites"][0], id=number, stack=stack, device=int(device), hash="%016x" % number)
    row.update(dict.fromkeys(("live_bytes", "at_peak_bytes", "total_bytes", "max_bytes"), size), live_count=1)
    row["size_hist"] = {str(1 << size.bit_length() - 1): 1}
    if row["device"] < 0:
        row["kind"] = "pinned"
    rows.append(row)
report["sites"], report["findings"], report["oom"], report["segments"] = rows, [], [], []
report["leaks"] = [{"site": n, "bytes": row["live_bytes"], "count": 1, "class": "at_exit", "first_ns": 1, "last_ns": 1} for n, row in enumerate(rows)]
report["devices"][0].update(live_bytes=sum(row["live_bytes"] for row in rows), live_count=len(rows))
json.dump(report, open(out, "w"))
END
}

torch=c10::cuda::CUDACachingAllocator::Native
torch_cached="libc10_cuda.so $torch::DeviceCachingAllocator::alloc_block(bool); libc10_cuda.so $torch::NativeCachingAllocator::allocate(unsigned long); libtorch_cpu.so at::detail::empty_generic(); libpython3.11.so cfunction_call"
torch_each="libc10_cuda.so $torch::uncached_allocate(unsigned long); libc10_cuda.so $torch::NativeCachingAllocator::allocate(unsigned long); libtorch_cpu.so at::detail::empty_generic()"
jax_cached='xla_cuda_plugin.so stream_executor::DeviceMemAllocator::Alloc(); xla_cuda_plugin.so tsl::BFCAllocator::Extend(unsigned long)'
jax_each='xla_cuda_plugin.so stream_executor::GpuCudaMallocAsyncAllocator::AllocateRaw(unsigned long); xla_cuda_plugin.so stream_executor::TfAllocatorAdapter::Allocate(int)'
own='app main'

# view REPORT: run.view and the frameworks with theirs, as the command tells them.
view() {
    "$TEST_BIN" summary --json "$1" | python3 -c 'import json, sys
run = json.load(sys.stdin)["run"]
print(run["view"], *("%s=%s" % (row["name"], row["view"]) for row in run["frameworks"]))'
}

@test "blocks of the program's own are blocks, and the listing has no word more" {
    called r.json "4096 0 $own"
    [ "$(view r.json)" = blocks ]
    try leaks r.json
    [[ $out == "4.0 KiB leaked in 1 block"* ]]
}

@test "PyTorch, JAX and RMM in both settings" {
    called r.json "2097152 0 $torch_cached" "4096 0 $own"
    [ "$(view r.json)" = "segments PyTorch=segments" ]
    called r.json "4096 0 $torch_each"
    [ "$(view r.json)" = "tensors PyTorch=tensors" ]
    called r.json "2097152 0 $jax_cached"
    [ "$(view r.json)" = "segments JAX=segments" ]
    called r.json "4096 0 $jax_each"
    [ "$(view r.json)" = "tensors JAX=tensors" ]
    called r.json "4096 0 app rmm::mr::cuda_memory_resource::do_allocate(); app rmm::mr::device_memory_resource::allocate(); app main"
    [ "$(view r.json)" = "tensors RMM=tensors" ]
    called r.json "4096 0 app rmm::mr::cuda_memory_resource::do_allocate(); app rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>::expand_pool(); app main"
    [ "$(view r.json)" = "segments RMM=segments" ]
}

@test "who is only given an allocator, or made for one, is none" {
    called r.json "4096 0 app mine::fill(rmm::mr::cuda_memory_resource&, rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>*); app main"
    [ "$(view r.json)" = blocks ]
    called r.json "4096 0 app void mine::fill<rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> >(); app main"
    [ "$(view r.json)" = blocks ]
    called r.json "4096 0 app rmm::mr::cuda_memory_resource::do_allocate(unsigned long); app void mine::fill<rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> >(); app main"
    [ "$(view r.json)" = "tensors RMM=tensors" ]
}

@test "two frameworks, and one in two settings, are mixed" {
    called r.json "4096 0 $torch_cached" "4096 0 $jax_each"
    [ "$(view r.json)" = "mixed PyTorch=segments JAX=tensors" ]
    try leaks r.json
    [[ $out == "shows tensors and segments of caches mixed, of PyTorch and JAX; "* ]]
    called r.json "4096 0 $torch_cached" "4096 0 $torch_each"
    [ "$(view r.json)" = "mixed PyTorch=mixed" ]
}

@test "without names of its functions an allocator is known, and its setting is not" {
    called r.json "4096 0 libc10_cuda.so -; libc10_cuda.so -; libtorch_cpu.so at::empty()"
    [ "$(view r.json)" = "unknown PyTorch=unknown" ]
    try leaks r.json
    [[ $out == "shows what PyTorch asked for: "*"4.0 KiB leaked in 1 block"* ]]
}

@test "host memory says nothing of the view, and is a framework's cache all the same" {
    called r.json "4096 0 $jax_each" "2097152 -1 $jax_cached"
    [ "$(view r.json)" = "tensors JAX=tensors" ]
    try leaks --json r.json
    python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["leaks"]
assert [(row["class"], row.get("framework")) for row in rows] == [("at_exit", None), ("cache", "JAX")], rows' out.txt
}

@test "what the interpreter called from within an allocator is not the allocator's" {
    called r.json "4096 0 libffi.so ffi_call; libpython3.11.so cfunction_call; $torch_cached"
    [ "$(view r.json)" = blocks ]
    try leaks r.json
    [[ $out == "4.0 KiB leaked in 1 block at 1 site"* ]]
}

@test "a cache is a class of its own and no leak, and a block of the program's beside it is one" {
    called r.json "2097152 0 $torch_cached" "1048576 0 $torch_cached" "4096 0 $own"
    try leaks r.json
    [ "$status" -eq 0 ]
    head -n 3 out.txt >head.txt
    printf '%s\n' 'shows segments of the cache of PyTorch, not tensors; memshim run --see-through shows these' \
        '4.0 KiB leaked in 1 block at 1 site: lost' '3.0 MiB kept in 2 blocks at 2 sites by caches of frameworks, which is no leak' | cmp - head.txt
    [[ $out == *"4.0 KiB in 1 block, lost,"*"2.0 MiB in 1 block, cache of PyTorch,"*"1.0 MiB in 1 block, cache of PyTorch,"* ]]
    try leaks --json r.json
    python3 -c 'import json, sys
told = json.load(open(sys.argv[1]))
assert (told["leaked_bytes"], told["cached_bytes"], told["view"]) == (4096, 3145728, "segments"), told' out.txt
    try summary r.json
    [[ $out == *"  shows segments of the cache of PyTorch"*"Peak  "*"Leak  4.0 KiB never freed"*"3.0 MiB kept by caches of frameworks"* ]]
    try summary --all r.json
    [[ $out == *"  shows segments of the cache of PyTorch"*"Devices"* ]]
    grep -qE '^  cuda 0 .* 4\.0 KiB ' out.txt
    try frag r.json
    [[ $out == "shows segments of the cache of PyTorch"* ]]
}

@test "a cache alone leaves no leaks" {
    called r.json "2097152 0 $torch_cached"
    try leaks r.json
    [[ $out == *$'\n'"no leaks"$'\n'"2.0 MiB kept in 1 block at 1 site"* ]]
    try leaks --min-bytes=1G r.json
    [[ $out == *"no leaks"* ]]
    absent grep -q 'left out' out.txt
}

@test "a suppression has the last word" {
    echo 'leak:alloc_block' >known.supp
    called r.json "2097152 0 $torch_cached"
    MEMSHIM_SUPPRESSIONS=known.supp try leaks r.json
    [[ $out == *"2.0 MiB more suppressed"* ]]
    absent grep -q 'which is no leak' out.txt
}

@test "symbolize writes it into the report, where validate finds nothing of it wrong, and a second time changes nothing" {
    called r.json "2097152 0 $torch_cached" "4096 0 $own"
    try symbolize -o once.json r.json
    try symbolize -o twice.json once.json
    [ "$status" -eq 0 ]
    cmp once.json twice.json
    python3 -c 'import json
report = json.load(open("once.json"))
assert report["run"]["view"] == "segments" and report["run"]["frameworks"] == [{"name": "PyTorch", "view": "segments"}]
assert [(row["class"], row.get("framework")) for row in report["leaks"]] == [("cache", "PyTorch"), ("at_exit", None)]'
    try validate once.json
    absent grep -E 'view|frameworks|class' out.txt err.txt
}

@test "reports that are damaged or made up are answered, and nothing of theirs reaches the terminal raw" {
    called r.json "2097152 0 $torch_cached"
    python3 - <<'END'
import copy, json
sound = json.load(open("r.json"))
changes = [lambda r: r["stacks"].__setitem__(1, [1, 0]), lambda r: r.update(stacks=[[0, -1], [1, 10**18]]), lambda r: r.update(stacks=7),
           lambda r: r.update(frames=[None, 3]), lambda r: r.update(modules=[[]]), lambda r: r.update(run=[]), lambda r: r.update(run=None),
           lambda r: r.update(leaks=[None, 3, {"site": -1}, {"site": 10**18}]),
           lambda r: r.update(sites=[None, {"device": 0, "stack": -5}, {"device": "x", "stack": 1}]),
           lambda r: r["run"].update(view="\x1b[31m"), lambda r: r["run"].update(frameworks=[{"name": "\x1b[31m", "view": "tensors"}, 3]),
           lambda r: r.update(frames=[], leaks=[dict(r["leaks"][0], framework="\x1b[31m")]),
           lambda r: r.update(frames=[], leaks=[{"class": "cache", "framework": 3}])]
for number, change in enumerate(changes):
    report = copy.deepcopy(sound)
    change(report)
    json.dump(report, open("bad%d.json" % number, "w"))
END
    for bad in bad*.json; do
        for verb in leaks summary frag; do
            try "$verb" "$bad"
            [ "$status" -eq 0 ]
            absent grep -q $'\e' out.txt
        done
    done
}

# ends_with OPTION...: a program whose report is r.json, under a memshim whose library is the stand-in.
ends_with() {
    mkdir -p bin lib
    cp "$TEST_BIN" bin/memshim
    cp "$top_builddir/tests/cli/fake_shim.so" lib/libmemshim.so
    cat >program <<'END'
#!/usr/bin/env python3
import json, os
report = json.load(open("r.json"))
report["run"].update(id="%016x" % int(os.environ["MEMSHIM_RUN"]), pid=os.getpid())
json.dump(report, open("told.json", "w"))
END
    chmod +x program
    TEST_BIN=$PWD/bin/memshim try run "$@" -o told.json -f -- ./program
}

@test "--fail-on-leak does not fail on a cache, does on a block beside it, and the closing line tells them apart" {
    called r.json "2097152 0 $torch_cached"
    ends_with --fail-on-leak
    [ "$status" -eq 0 ]
    [[ $err == *"leaked 0 B in 0 blocks; caches of frameworks kept 2.0 MiB"*"memshim: shows segments of the cache of PyTorch"*"memshim: next: memshim run --see-through -- "* ]]
    called r.json "2097152 0 $torch_cached" "4096 0 $own"
    ends_with --fail-on-leak
    [ "$status" -eq 23 ]
    [[ $err == *"leaked 4.0 KiB in 1 block: lost; caches"*"next: memshim leaks told.json"*"leaked 4.0 KiB, allowed 0 B"* ]]
}
