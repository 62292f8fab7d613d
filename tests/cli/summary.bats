#!/usr/bin/env bats
# memshim summary
load "$TEST_HELPERS/common.bash"
load helpers

@test "summary shows the figures of the report in units for people" {
    try summary "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ $out == "./train --steps 10"* ]]
    [[ $out == *"process 4242 on node1, rank 3, 3.2 s, ended by exit (0)"* ]]
    [[ $out == *"cuda 0 "*"120.0 MiB"*"3.0 MiB"*"3.0 MiB"*"8.0 GiB  Simulated GPU"* ]]
    [[ $out == *"64.0 MiB at peak, 2.0 MiB live, 64.0 MiB in 1 call of cudaMalloc, device 0"*"make_weights at /src/train.c:41"* ]]
    [[ $out == *"not seen: /usr/lib/libdeep.so was opened with RTLD_DEEPBIND"* ]]
    [[ $out == *"cuGetProcAddress 440"* ]]
}

@test "sites come by their share of the peak, and --top bounds them" {
    try summary -n 1 "$data/train.json"
    [[ $out == *"1 of 3"*"make_weights"* ]]
    [[ $out != *"step at"* ]]
    [[ $out == *"13 "*" cudaMalloc"*"... 1 more"* ]]
    [[ $out != *"10 "*" cudaMallocAsync"* ]]
    try summary "$data/train.json"
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

@test "several reports: a page each, an array in JSON, nothing at all if one is bad" {
    try summary "$data/train.json" "$data/train.json"
    [ "$(echo "$out" | grep -c '^./train')" -eq 2 ]
    try summary --json "$data/train.json" "$data/train.json"
    python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))) == 2' out.txt
    try summary "$data/train.json" missing.json
    refused 2 "missing.json" "No such file"
}

@test "several reports: what each process had reserved at most, and all of them together" {
    python3 - "$data/train.json" >pool.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
r["devices"][0]["peak_reserved_bytes"] = 140 << 20
json.dump(r, sys.stdout)
END
    try summary pool.json pool.json
    [[ $(head -1 out.txt) == *"peak"*"reserved"*"live"*"leaked"*"devices"* ]]
    grep -qE '^4242 +3 +120.0 MiB +140.0 MiB +3.0 MiB +3.0 MiB +1 +pool.json$' out.txt
    grep -qE '^total +240.0 MiB +280.0 MiB +6.0 MiB +6.0 MiB +2  2 processes$' out.txt
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
    try summary -n 0 oom.json
    [ "$status" -eq 0 ]
    [[ $out == *"cudaMallocAsync of 8.0 MiB on device 0 (limit); 3.0 MiB were live, 4.0 MiB reserved, the largest free piece 512.0 KiB"* ]]
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
