#!/usr/bin/env bats
# Reports that somebody made to do harm: commands for the terminal in every kind of string, and lists that take a careless reader hours.
load "$TEST_HELPERS/common.bash"
load helpers

@test "no kind of string in a report reaches the terminal as a command or as a line of its own" {
    python3 - "$TEST_BIN" "$data/train.json" <<'END'
import copy, json, subprocess, sys

command, path = sys.argv[1:]
report = json.load(open(path))
report["oom"] = report.get("oom") or [{"t_ns": 1, "device": 0, "api": "cudaMalloc", "requested": 1, "cause": "limit", "live": 1,
                                       "reserved": 1, "largest_free": 1, "top_sites": [{"site": 0, "bytes": 1}], "stack": 1}]
report["findings"] = [{"rule": "r", "severity": "warning", "confidence": "exact", "bytes": 1, "message": "m", "advice": "a"}]
report["diagnostics"] = ["a line"]
report["coverage"]["blind_spots"] = ["a spot"]
report["pools"] = [{"id": 0, "device": 0, "kind": "default", "tier_hits": {"slab": 1, "run": 1, "single": 1}, "streams": [{"stream": "0x1"}]}]
report["segments"] = [{"device": 0, "address": "0x1000", "bytes": 4096, "tier": "run", "backing": "malloc",
                       "blocks": [{"offset": 0, "bytes": 512, "requested": 500, "state": "live", "site": 0}]}]
report["memory"] = [{"kind": "pinned", "live_bytes": 1, "live_count": 1, "peak_live_bytes": 1}]
report["devices"][0]["peak_reserved_bytes"] = 4096
report["run"].update(end_reason="signal", signal=11, job_id="7", symbolized=True)
UNSEEN = "\u202e\u2066\u200b\u200f\u2028\ufeff\U000e0041"
HARM = "\u009b31m\x1b]0;x\x07\x7f\u0085" + UNSEEN + "\r\nINJECTED"

def places(value, at=()):
    if isinstance(value, str):
        yield at
    for key, member in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(member, at + (key,))

def harmed(spots):
    changed = copy.deepcopy(report)
    for spot in spots:
        holder = changed
        for key in spot[:-1]:
            holder = holder[key]
        holder[spot[-1]] += HARM
    return changed

TEXT = [["summary"], ["summary", "--all"], ["findings"], ["leaks"], ["frag"], ["owners"], ["peak"]]
ALL = TEXT + [["validate"], ["symbolize", "-o", "-"], ["summary", "--json"], ["leaks", "--json"], ["frag", "--json"], ["owners", "--json"], ["peak", "--json"], ["findings", "--json"],
              ["tree"], ["flamegraph"], ["timeline"],
              *(["export", "--format", what] for what in ("folded", "chrome", "dhat", "openmetrics", "jsonl")),
              ["summary", "hostile.json"], ["leaks", "hostile.json"], ["frag", "hostile.json"]]
for verb in ("contexts", "oom"):
    TEXT.append([verb])
    ALL += [[verb], [verb, "--json"]]

def check(what, spots, verbs):
    json.dump(harmed(spots), open("hostile.json", "w"), ensure_ascii=False)
    for verb in verbs:
        done = subprocess.run([command, *verb, "hostile.json"], capture_output=True, timeout=100)
        text = done.stdout.decode() + done.stderr.decode()
        bad = [c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or c in UNSEEN]
        assert not bad and "\nINJECTED" not in text, (what, verb, bad[:3], text[:2000])
        assert done.returncode in (0, 1, 2), (what, verb, done.returncode)

kinds = {}
for spot in places(report):
    if spot != ("schema_version",):
        kinds.setdefault(tuple(key for key in spot if isinstance(key, str)), []).append(spot)
assert len(kinds) > 40, kinds.keys()
check("all", [spot for spots in kinds.values() for spot in spots], ALL)
for kind in kinds:
    if kind[0] in ("run", "devices", "segments", "pools", "oom", "findings", "memory", "leaks", "apis", "sites"):
        check(kind, kinds[kind], TEXT)
check("version", [("schema_version",)], ALL)
END
}

@test "a name of a file is no command for the terminal either" {
    name=$(printf 'x\033]0;y\007\302\233z.json')
    cp "$data/train.json" "$name"
    for verb in summary leaks frag validate; do
        try "$verb" "$name" "$name.missing"
        absent grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' out.txt
        absent grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' err.txt
    done
}

# bounded: the Python program on standard input prints the report; each verb ends within as much processor time as the reading takes many times over. A reader that
# goes through a list for each row of another needs minutes for these.
bounded() {
    python3 - >hostile.json
    for verb in summary leaks frag validate; do
        (ulimit -t 30; "$TEST_BIN" "$verb" hostile.json >out.txt 2>err.txt) || [ $? -le 2 ]
    done
    (ulimit -t 30; "$TEST_BIN" export --format chrome -o chrome.json hostile.json 2>err.txt)
    rm hostile.json
}

@test "ids that are not at their places are found without a search through all of them" {
    bounded <<'END'
import random
n = 100000
order = list(range(n))
random.Random(7).shuffle(order)
print('{"schema_version": "1.0", "run": {"symbolized": true}, "sites": [')
print(",".join('{"id":%d}' % i for i in order))
print('], "leaks": [', ",".join('{"site":%d,"bytes":1}' % i for i in range(n)), "]}")
END
}

@test "many devices are summed up in one pass" {
    bounded <<'END'
n = 50000
print('{"schema_version": "1.0", "run": {"symbolized": true, "complete": true}, "overhead": {}, "devices": [')
print(",".join('{"index":%d}' % i for i in range(n)))
print('], "sites": [', ",".join('{"id":%d,"device":%d}' % (i, i) for i in range(n)))
print('], "leaks": [', ",".join('{"site":%d,"bytes":1}' % i for i in range(n)))
print('], "segments": [', ",".join('{"device":%d,"bytes":4096,"tier":"run"}' % i for i in range(n)), "]}")
END
}
