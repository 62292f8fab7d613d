#!/usr/bin/env bats
# memshim summary
load "$TEST_HELPERS/common.bash"
load helpers

@test "one screen says who held the memory, what leaked and what comes next" {
    try summary "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [ "$(wc -l <out.txt)" -le 20 ]
    [[ $out == "./train --steps 10"* ]]
    [[ $out == *"process 4242 on node1, rank 3, 3.2 s, ended by exit (0)"* ]]
    [[ $out == *"Peak  120.0 MiB allocated on cuda 0 of 8.00 GiB; "*"Simulated GPU"* ]]
    [[ $out == *"64.0 MiB  cudaMalloc, in make_weights at /src/train.c:41"* ]]
    [[ $out == *"Leak  3.0 MiB never freed, in "*"2.0 MiB  cudaMalloc, in make_weights at /src/train.c:41"* ]]
    [[ $out == *"Not seen: 1 way to the GPU"* ]]
    [[ $out == *"Next  memshim "*"train.json"* ]]
}

@test "whatever a report has, the screen has twenty lines" {
    python3 - "$data/train.json" >full.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
device = dict(r["devices"][0], peak_reserved_bytes=200 << 20, peak_parts=dict(requested=60 << 20, rounding=1 << 20, limbo=0, cached=9 << 20, stranded=130 << 20, pinned=0))
r["devices"] = [dict(device, index=i) for i in range(9)]
r["sites"] = [dict(r["sites"][i % 3], id=i, device=i % 9, at_peak_bytes=1000 + i) for i in range(90)]
r["leaks"] = [{"site": i, "bytes": 100 + i, "count": 1, "class": "at_exit" if i % 2 else "growing", "device": i % 9} for i in range(25)]
r["findings"] = [{"rule": "stranded_memory", "severity": "warning", "confidence": "exact", "bytes": 1 << 30, "device": 0, "message": "much", "advice": "MEMSHIM_BACKING=vmm"}]
r["oom"] = [{"t_ns": 4000000, "device": 0, "api": "cudaMallocAsync", "requested": 8 << 20, "cause": "limit", "live": 3 << 20,
             "reserved": 4 << 20, "largest_free": 1 << 19, "stack": r["sites"][1]["stack"], "top_sites": []}]
json.dump(r, sys.stdout)
END
    try summary full.json
    [ "$status" -eq 0 ]
    [ "$(wc -l <out.txt)" -le 20 ]
    [[ $out == *"Waste 140.0 MiB of 200.0 MiB reserved; 130.0 MiB of it inactive between allocated blocks (fragmentation)"* ]]
    [[ $out == *"Found much"*"to do: MEMSHIM_BACKING=vmm ("*"more: memshim findings)"* ]]
    [[ $out == *"and, each at a time of its own, 120.0 MiB on cuda 1, "*", less on 4 more"* ]]
}

@test "nothing is wrong: it says so" {
    python3 - "$data/train.json" >none.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
r["leaks"], r["findings"] = [], []
json.dump(r, sys.stdout)
END
    try summary none.json
    [[ $out == *"Leak  none"*"Waste none seen"*"Next  memshim peak none.json"* ]]
}

@test "--all shows the figures of the report in units for people" {
    try summary --all "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ $out == "./train --steps 10"* ]]
    [[ $out == *"process 4242 on node1, rank 3, 3.2 s, ended by exit (0)"* ]]
    [[ $out == *"cuda 0 "*"120.0 MiB"*"3.0 MiB"*"3.0 MiB"*"8.00 GiB  Simulated GPU"* ]]
    [[ $out == *"64.0 MiB at peak, 2.0 MiB at the end, 64.0 MiB in 3 calls of cudaMalloc, device 0"*"make_weights at /src/train.c:41"* ]]
    [[ $out == *"not seen: /usr/lib/libdeep.so was opened with RTLD_DEEPBIND"* ]]
    [[ $out == *"cuGetProcAddress 440"* ]]
}

@test "--all: sites come by their share of the peak, and --top bounds them" {
    try summary --all -n 1 "$data/train.json"
    [[ $out == *"1 of 3"*"make_weights"* ]]
    [[ $out != *"step at"* ]]
    [[ $out == *"13 "*" cudaMalloc"*"... 1 more"* ]]
    [[ $out != *"10 "*" cudaMallocAsync"* ]]
    try summary --all "$data/train.json"
    [[ $out == *"make_weights"*"step at"*"libstripped.so+0x7f10"* ]]
}

@test "--json keeps bytes, and agrees with the report" {
    try summary --json "$data/train.json"
    [ "$status" -eq 0 ]
    python3 - "$data/train.json" out.txt <<'END'
import json, sys
report, summary = (json.load(open(path)) for path in sys.argv[1:])
assert summary["leaked_bytes"] == sum(leak["bytes"] for leak in report["leaks"]) == 3145728
assert summary["devices"][0]["peak_live_bytes"] == report["devices"][0]["peak_live_bytes"]
assert summary["devices"][0]["leaked_bytes"] == 3145728
assert [site["id"] for site in summary["top_sites"]] == [0, 1, 2]
assert summary["top_sites"][0]["stack"][0]["function"] == "make_weights"
END
}

@test "several reports: a page each under --all, an array in JSON, nothing at all if one is bad" {
    try summary --all "$data/train.json" "$data/train.json"
    [ "$(echo "$out" | grep -c '^./train')" -eq 2 ]
    try summary --json "$data/train.json" "$data/train.json"
    python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))) == 2' out.txt
    try summary "$data/train.json" missing.json
    refused 2 "missing.json" "No such file"
}

# job COUNT: reports 0.json ... of so many ranks; rank n had 100 MiB less n at most on device 0, and 7 MiB on another.
job() {
    python3 - "$data/train.json" "$1" <<'END'
import json, sys
for rank in range(int(sys.argv[2])):
    r = json.load(open(sys.argv[1]))
    r["run"]["rank"] = rank
    r["devices"][0].update(peak_live_bytes=100 - rank << 20, peak_reserved_bytes=140 << 20)
    r["devices"].append(dict(r["devices"][0], index=1, peak_live_bytes=7 << 20, peak_reserved_bytes=8 << 20))
    if rank != 1:
        r["leaks"] = []
    json.dump(r, open("%d.json" % rank, "w"))
END
}

@test "a job: a line for each process, by its fullest device; peaks are not added up; and the screen of the fullest" {
    job 4
    try summary 2.json 0.json 3.json 1.json
    [ "$status" -eq 0 ]
    [ "$(wc -l <out.txt)" -le 26 ]
    grep -qE '^rank 0 +100.0 MiB +140.0 MiB +0 B  cuda 0   0.json$' out.txt
    [ "$(sed -n '2,5s/ .*MiB.*cuda.* \([0-9]\).json/ \1/p' out.txt | tr -s ' ' | tr '\n' ,)" = "rank 0,rank 1,rank 2,rank 3," ]
    grep -qx '4 processes: peak 97.0 MiB (rank 3) to 100.0 MiB (rank 0), median 98.5 MiB; 1 leaked, 3.0 MiB together' out.txt
    [[ $out == *"The fullest:"*"rank 0"*"Peak  100.0 MiB allocated on cuda 0"*"Next  memshim leaks 1.json"* ]]
    [[ $out != *"394.0 MiB"* && $out != *"560.0 MiB"* && $out != *"107.0 MiB"* ]]
}

@test "peaks of devices and of processes are added up nowhere: phases, and what run says at the end" {
    job 2
    for rank in 0 1; do
        python3 - $rank.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
figures = {"min": 5 << 20, "median": 5 << 20, "max": 5 << 20}
r["phases"] = [{"name": "step", "source": "nvtx", "count": 2, "open": 0, "marks": 0, "first_ns": 0, "last_ns": 1, "total_ns": 1,
                "devices": [{"device": 0, "count": 2, "peak_bytes": figures, "growth_bytes": dict(figures, total=0), "sites": []}]}]
json.dump(r, open(sys.argv[1], "w"))
END
    done
    try phases 0.json 1.json
    grep -qE '^total +5.0 MiB +2 +4  2 processes$' out.txt
    need_plain
    cat >two.py <<'END'
import ctypes
runtime = ctypes.CDLL("libcudart.so.13")
p = ctypes.c_void_p()
for device, size in ((0, 3), (1, 5)):
    assert runtime.cudaSetDevice(device) == 0
    assert runtime.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size << 20)) == 0
    assert runtime.cudaFree(p) == 0
END
    MEMSIM_DEVICES=2 try run --sim -o two.json -- python3 two.py
    [[ $err == *": peak 5.0 MiB allocated and "*" reserved on the fullest of 2 devices, leaked 0 B in 0 blocks"* ]]
}

@test "of many processes the fullest and the emptiest" {
    job 9
    try summary [0-8].json
    [ "$(wc -l <out.txt)" -le 28 ]
    [[ $out == *"rank 3 "*"... 4 more"*"rank 8 "* ]]
    [[ $out != *"rank 5 "* ]]
}

@test "memory that could not be had: who asked, and who held the rest" {
    python3 - "$data/train.json" >oom.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
r["oom"] = [{"t_ns": 4000000, "device": 0, "api": "cudaMallocAsync", "requested": 8 << 20, "cause": "limit", "live": 3 << 20,
             "reserved": 4 << 20, "largest_free": 1 << 19, "stack": r["sites"][1]["stack"],
             "top_sites": [{"site": 0, "bytes": 2 << 20}, {"site": 2, "bytes": 1 << 20}]}]
json.dump(r, sys.stdout)
END
    try summary oom.json
    [[ $out == *"Out of memory: cudaMallocAsync of 8.0 MiB on device 0, in "*", cause: limit; 3.0 MiB were allocated, 4.0 MiB reserved"*"held most then: 2.0 MiB by cudaMalloc, in make_weights at /src/train.c:41; 1.0 MiB by "*"Peak  "* ]]
    try summary --all -n 0 oom.json
    [ "$status" -eq 0 ]
    [[ $out == *"cudaMallocAsync of 8.0 MiB on device 0 (limit); 3.0 MiB were allocated, 4.0 MiB reserved for the pool, the largest free piece 512.0 KiB"* ]]
    [[ $out == *"held most then:"*"2.0 MiB by cudaMalloc, in make_weights at /src/train.c:41"*"1.0 MiB by "* ]]
}

@test "a program that was killed is said to be, by which signal where that is known" {
    python3 - "$data/train.json" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
del r["run"]["exit_code"]
r["run"]["end_reason"] = "killed"
json.dump(r, open("killed.json", "w"))
r["run"]["signal"] = 9
json.dump(r, open("signal.json", "w"))
END
    try summary killed.json
    [[ $out == *", 3.2 s, killed"$'\n'* ]]
    try summary signal.json
    [[ $out == *", 3.2 s, killed by signal 9 (Killed)"$'\n'* ]]
}

@test "no colour on a pipe, and none on a terminal under NO_COLOR" {
    try summary "$data/train.json"
    absent grep -q "$(printf '\033')" out.txt
    need_terminal
    NO_COLOR=1 TERM=xterm script -qec "'$TEST_BIN' summary '$data/train.json'" /dev/null >tty.txt
    absent grep -q "$(printf '\033')" tty.txt
    env -u NO_COLOR TERM=xterm script -qec "'$TEST_BIN' summary '$data/train.json'" /dev/null >tty.txt
    grep -q "$(printf '\033')" tty.txt
}

@test "-o writes a file once, -f again, and - is standard output" {
    try summary -o page.txt "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    grep -q node1 page.txt
    echo keep >page.txt
    try summary -o page.txt "$data/train.json"
    refused 2 "page.txt" "-f"
    grep -q keep page.txt
    try summary -f -o page.txt "$data/train.json"
    [ "$status" -eq 0 ]
    grep -q node1 page.txt
    try summary -o - "$data/train.json"
    [[ $out == *node1* ]]
    [ "$(ls | grep -c 'page.txt')" -eq 1 ]
}

@test "text from a report cannot drive the terminal" {
    sed 's/"make_weights"/"make\\u001b[31m_weights\\u0007"/' "$data/train.json" >evil.json
    try summary evil.json
    [ "$status" -eq 0 ]
    absent grep -q "$(printf '[\033\007]')" out.txt
    [[ $out == *"make?[31m_weights?"* ]]
}
