#!/usr/bin/env python3
"""Pieces of segments that an allocator of the program's own gives it: the report has each with its site, apart from the segments, and
says what the allocator's own book says. The stand-in of PyTorch is opened as Python opens it, and its own function hears all that it did."""
import json
import os
import pickle
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "html"))
import page_format  # noqa: E402
from innerlib import USER, findings, play, read, screen  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, native_environment, plan, trace_lines  # noqa: E402

SEGMENT = 2 << 20


def holds(report, line, has_reserved=True):
    """What differs from the program's own book: live bytes, how many pieces, at most, and of segments."""
    live, count, peak, reserved = map(int, line.split()[:4])
    device, heap = report["inner_devices"][0], report["heaps"][0]
    pieces = [block for segment in report["inner_segments"] for block in segment["blocks"] if block["state"] == "live"]
    sites = report["inner_sites"]
    told = {
        "live": (live, device["live_bytes"], heap["live_bytes"], sum(piece["bytes"] for piece in pieces), sum(site["live_bytes"] for site in sites)),
        "count": (count, device["live_count"], heap["live_count"], len(pieces), sum(site["live_count"] for site in sites)),
        "peak": (peak, device["peak_live_bytes"], sum(site["at_peak_bytes"] for site in sites)),
        "never freed": (live, sum(leak["bytes"] for leak in report["inner_leaks"])),
        "segments": (reserved, report["devices"][0]["live_bytes"]),
        "the course": (peak, max(report["inner_timeline"]["devices"][0]["live"])),
    }
    if has_reserved:
        told["reserved"] = (reserved, heap["reserved_bytes"], heap["peak_reserved_bytes"], device["held_bytes"])
        told["cached"] = (reserved - live, heap["cached_bytes"], device["cached_bytes"])
    return ["%s: %s" % (name, values) for name, values in told.items() if len(set(values)) != 1]


def check_release(release):
    done, path = play("torch", str(release))
    report = read(path)
    wrong = holds(report, done.stdout, release > 0)
    apart = [site for site in report["sites"] if site["kind"] == "inner"] or [leak for leak in report["leaks"] if leak["kind"] == "inner"]
    fact(done.returncode == 0 and not wrong, "release %d: the inner layer is the allocator's book" % release, wrong + [done.stderr])
    fact(done.stdout.split()[-1] == "all", "release %d: PyTorch's own function heard all of it" % release, [done.stdout])
    fact(not apart and len(report["inner_sites"]) == 2, "release %d: two call sites, and none of them among the segments'" % release, [apart, len(report["inner_sites"])])


def check_segments():
    """Pieces lie in their segments: what is free between them is the allocator's."""
    done, path = play("torch", "2")
    report = read(path)
    wrong = []
    for segment in report["inner_segments"]:
        end = 0
        for block in segment["blocks"]:
            if block["offset"] != end:
                wrong.append("a gap at %d of %s" % (end, segment["address"]))
            end = block["offset"] + block["bytes"]
        if end != segment["bytes"] or segment["bytes"] != SEGMENT or segment["tier"] != "framework":
            wrong.append({name: segment[name] for name in ("address", "bytes", "tier")})
    fact(report["inner_segments"] and not wrong, "segments with live pieces are told whole", wrong[:5])
    fact(done.returncode == 0, "the program ended as ever", [done.stderr])


def check_threads():
    done, path = play("threads")
    wrong = holds(read(path), done.stdout)
    fact(done.returncode == 0 and not wrong, "four threads: the inner layer is the allocator's book", wrong + [done.stderr])


def check_killed():
    """After SIGKILL the ledger has the pieces, the last one too."""
    ledgers = os.path.join(TMP, "ledgers")
    os.makedirs(ledgers, exist_ok=True)
    done, path = play("kill", MEMSHIM_DIR=ledgers)
    found = sorted(os.path.join(ledgers, name) for name in os.listdir(ledgers) if name.endswith(".ledger"))
    subprocess.run([MEMSHIM, "recover", "-f", "-o", path, *found], env=native_environment(), check=False, capture_output=True)
    report = read(path)
    live, count = map(int, done.stdout.split()[:2])
    device = report["inner_devices"][0]
    fact(done.returncode == -9 and device["live_count"] == count + 1 and device["live_bytes"] == live + 25 * 512,
         "a killed process's ledger has its pieces", [done.stdout, device])


def check_child():
    """A child of fork has a record of its own: its pieces, and none of its parent's."""
    place = os.path.join(TMP, "forked")
    os.makedirs(place)
    done, _ = play("fork", MEMSHIM_REPORT=os.path.join(place, "%p.json"))
    found = sorted(((report["run"]["pid"], report["inner_devices"][0]["live_count"], report["heaps"][0]["live_bytes"], report["heaps"][0]["name"]) for report in
                    (read(os.path.join(place, name)) for name in os.listdir(place))))
    live, count = map(int, done.stdout.splitlines()[0].split()[:2])
    fact([row[1:] for row in found] == [(count, live, "PyTorch"), (5, 5 * 512, "PyTorch")], "a child of fork has its own pieces alone", [found, done.stdout, done.stderr])


def check_off():
    """Where memshim is off PyTorch's function is called all the same."""
    for mode in ("off", "track", "pool"):
        done, path = play("torch", "2", MEMSHIM_MODE=mode)
        fact(done.returncode == 0 and done.stdout.split()[-1] == "all", "mode %s: PyTorch's own function heard all of it" % mode, [done.stdout, done.stderr])
        if mode != "off":
            wrong = holds(read(path), done.stdout)
            fact(not wrong, "mode %s: the inner layer is the allocator's book" % mode, wrong)


def check_pools():
    done, path = play("pools")
    report = read(path)
    heaps = {heap["name"]: (heap["live_bytes"], heap["live_count"]) for heap in report["heaps"] if heap["live_count"]}
    fact(done.stdout == "1\n" and heaps == {"weights": (8000, 8), "cache": (4096, 1)}, "pools of the program's own, by name", [done.stdout, report["heaps"]])
    device = report["inner_devices"][0]
    fact((device["live_bytes"], device["peak_live_bytes"]) == (8000 + 4096 + 77, 16000 + (1 << 20)), "and what is of no pool counts, too", [device])
    natively = subprocess.run([USER, "pools"], env=native_environment(), text=True, capture_output=True, check=False)
    fact(natively.returncode == 0 and natively.stdout == "0\n", "without memshim the functions are not there, and nothing happens", [natively.stdout, natively.stderr])


def check_arenas():
    """Pieces end with the block that they lie in, however that ends; others stay."""
    for mode in ("pool", "track"):
        done, path = play("arenas", MEMSHIM_MODE=mode)
        report = read(path)
        device, heap = report["inner_devices"][0], report["heaps"][0]
        pieces = sum(block["state"] == "live" for segment in report["inner_segments"] for block in segment["blocks"])
        fact(done.stdout == "99\n" and (device["live_count"], heap["live_count"], pieces, device["allocated_count"], device["peak_live_bytes"]) == (99, 99, 99, 510, 500 * 1000),
             "mode %s: pieces end with their block" % mode, [done.stdout, done.stderr, device, heap])


def check_wrong():
    """What no block can have is not recorded, and said; what lies over each other makes a report that is sound."""
    for mode in ("pool", "track"):
        done, path = play("wrong", MEMSHIM_MODE=mode)
        report, valid = read(path), screen("validate", path)
        device, told = report["inner_devices"][0], [line for line in report["diagnostics"] if "memshim_inner_alloc told a piece of 4096 bytes" in line]
        fact((done.returncode, done.stdout, device["allocated_count"], device["live_count"], len(told)) == (0, "3\n", 3, 3, 1) and "is no device's memory" in told[0],
             "mode %s: pieces of no block are not recorded" % mode, [done.stderr, device, report["diagnostics"]])
        fact(valid == "", "mode %s: pieces that overlap make a sound report" % mode, [valid])


def check_many():
    """Pieces that are not shown are counted, and where they may lie nothing is told to be free."""
    for pieces, blocks, shown, hides in ((30000, 5, 30000, False), (12000, 1, 10000, True), (410000, 50, 400000, True)):
        _, path = play("many", str(pieces), str(blocks))
        report, valid = read(path), subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
        device, segments = report["inner_devices"][0], report["inner_segments"]
        live = [block for segment in segments for block in segment["blocks"] if block["state"] == "live"]
        left_out = device.get("blocks_left_out", 0) + sum(segment.get("blocks_left_out", 0) for segment in segments)
        bytes_left_out = device.get("bytes_left_out", 0) + sum(segment.get("bytes_left_out", 0) for segment in segments)
        fact((device["live_count"], len(live), left_out, bytes_left_out) == (pieces, shown, pieces - shown, 64 * (pieces - shown))
             and any("leaves out %d of %d live pieces" % (left_out, pieces) in line for line in report["diagnostics"]) == hides,
             "%d pieces: %d are shown, and the others counted" % (pieces, shown), [device, len(live), left_out, report["diagnostics"]])
        sound = screen("validate", path)
        fact(valid.returncode == 0 and sound == "", "%d pieces: the report is sound" % pieces, [valid.stdout, valid.stderr, sound])
        drawn = json.loads(screen("frag", path, "--json"))["devices"][0]
        text = screen("frag", path)
        fact((drawn["free_bytes"] == 0) == hides and drawn.get("blocks_left_out", 0) == left_out and ("pieces that the report leaves out" in text) == hides,
             "%d pieces: what they may lie in is not free" % pieces, [drawn["free_bytes"], text])


def check_trace():
    """The trace has pieces with their sites, apart from blocks; screens and exports show the moment of their peak."""
    trace = os.path.join(TMP, "pieces.trace")
    done, path = play("torch", "2", MEMSHIM_TRACE=trace)
    live, count, peak = map(int, done.stdout.split()[:3])
    report = read(path)
    rows = {site.get("row", site["id"]): site for site in report["inner_sites"]}
    held, now, most, numbers, wrong = {}, 0, 0, 0, []
    events = [line.split() for line in trace_lines(trace) if line[0] != "#" and line.split()[1] in "AF"]
    for event in events:
        op, number, size = event[1], int(event[2]), int(event[3])
        if op == "A":
            numbers += 1
            held[number] = size
            if number != numbers or int(event[5]) not in rows or int(event[6], 16) == 0:
                wrong.append(event)
        elif held.pop(number, None) != size:
            wrong.append(event)
        now += size if op == "A" else -size
        most = max(most, now)
    fact(not wrong and (now, len(held), most, numbers) == (live, count, peak, report["inner_devices"][0]["allocated_count"]), "the trace has the pieces", [wrong[:3], now, most, done.stdout])
    then = json.loads(screen("frag", path, "--trace", trace, "--at", "peak", "--json"))["devices"][0]
    fact(then["then"]["placed_bytes"] == then["then"]["live_bytes"] == peak and then["free_bytes"] == SEGMENT * then["segment_count"] - peak
         and {segment["tier"] for segment in then["segments"]} == {"framework"}, "frag shows their segments at the peak of the pieces", [then])
    again = json.loads(screen("frag", path, "--trace", trace, "--at", "peak", "--json", "--layer", "blocks"))["devices"][0]["then"]
    fact(again["live_bytes"] == report["devices"][0]["peak_live_bytes"], "and blocks at that of the blocks", [again])
    exported = subprocess.run([MEMSHIM, "export", "--format", "snapshot", "--trace", trace, path], env=native_environment(), capture_output=True, check=True)
    data = pickle.loads(exported.stdout)
    allocs = sum(event["action"] == "alloc" for events in data["device_traces"] for event in events)
    fact(allocs == numbers, "a snapshot has each piece's history", [allocs, numbers])



def check_emptied():
    """An allocator says nothing when it gives segments back: it has no more than there is."""
    done, path = play("emptied")
    wrong = holds(read(path), done.stdout)
    fact(done.returncode == 0 and [row for row in wrong if not row.startswith("reserved")] == [], "segments that were given back are nobody's cache", [wrong, done.stdout])


def check_hopeless():
    """More refusals than the report has rows for; and none of a piece that was ever given."""
    done, path = play("hopeless", MEMSIM_MEMORY="64M")
    report = read(path)
    shown = screen("oom", path)
    fact(done.returncode == 0 and report["overhead"]["oom_events"] == 30 and "PyTorch of 100.0 MiB (a tensor)" in shown and "cudaMalloc" not in shown
         and shown.endswith("%d earlier ones are not known\n" % (30 - shown.count("why:"))), "each is one event, those too that have no row", [report["overhead"], shown[-400:]])
    status = subprocess.run([MEMSHIM, "check", "--max-oom", "30", path], env=native_environment(), capture_output=True, check=False).returncode
    less = subprocess.run([MEMSHIM, "check", "--max-oom", "29", path], env=native_environment(), capture_output=True, check=False).returncode
    fact((status, less) == (0, 1), "and check counts them so", [status, less])



def check_elsewhere():
    """Of a device that memshim does not know it is not told why there was no memory."""
    done, path = play("elsewhere", MEMSIM_MEMORY="64M")
    rows = read(path)["inner_oom"]
    fact(done.returncode == 0 and len(rows) == 1 and rows[0]["device"] == -1 and "cause" not in rows[0] and not rows[0]["would_fit"] and "why: not known" in screen("oom", path),
         "no reason is made up", [rows, done.stderr])


def check_growth():
    """Steps that keep one piece more each are found, with the line; those that keep none are not."""
    done, path = play("grow")
    found = [row for row in findings(path) if row["rule"] == "growth"]
    fact(done.returncode == 0 and len(found) == 1 and "inner_site" in found[0] and "site" not in found[0] and "20 phases \"train step\"" in found[0]["message"]
         and found[0]["bytes"] == 20 * 118 * 512, "a step that leaves a tensor more each time is a finding", [found])
    validated = subprocess.run([MEMSHIM, "validate", path], env=native_environment(), text=True, capture_output=True, check=False)
    fact(validated.returncode == 0, "and the report is sound", [validated.stdout, validated.stderr])
    done, path = play("steady")
    fact(done.returncode == 0 and not findings(path), "one that leaves none is none", [findings(path)])


def check_layers():
    """Screens show tensors where there are any, and blocks where they are asked for, or nothing else is there."""
    done, path = play("torch", "2")
    live, _, peak, reserved = done.stdout.split()[:4]
    tensors, blocks, summary = screen("peak", path), screen("peak", path, "--layer", "blocks"), screen("summary", path)
    fact(tensors.startswith("shows the tensors that PyTorch gave; --layer blocks ") and "cudaMalloc" not in tensors and "forward" in tensors,
         "peak shows tensors", [tensors])
    fact("cudaMalloc" in blocks and "tensors" not in blocks, "and blocks", [blocks])
    fact(" allocated by tensors, " in summary and " reserved by PyTorch, of " in summary and " cached by PyTorch at the end" in summary and "\nBlocks " in summary and re.search(r"^Leak  \S+( \S+)? of blocks\b", summary, re.M) and "--layer" not in summary + screen("findings", path),
         "summary begins with the tensors", [summary])
    data = json.loads(screen("owners", path, "--json"))
    cached = [row for row in data["owners"] if row["owner"] == "cached by PyTorch"]
    fact([row["live_bytes"] for row in cached] == [int(reserved) - int(live)], "owners have what is cached", [data["owners"]])
    refused = screen("peak", path, "--layer", "segments")
    fact(refused == "memshim peak: --layer 'segments' is not allowed: tensors or blocks\n", "another layer is refused", [refused])
    plain = os.path.join(TMP, "plain.json")
    report = read(path)
    with open(plain, "w", encoding="utf-8") as file:
        json.dump({name: value for name, value in report.items() if not name.startswith("inner_") and name != "heaps"}, file)
    fact("cudaMalloc" in screen("peak", plain), "without tensors the blocks are shown", [screen("peak", plain)])
    told = screen("peak", plain, "--layer", "tensors")
    fact("nothing reported tensors, so these are the blocks" in told and "cudaMalloc" in told, "and it says so where tensors were asked for", [told])
    for verb in ("tree", "flamegraph", "phases", "leaks", "frag"):
        fact("--layer blocks" in screen(verb, path), "%s shows tensors" % verb, [screen(verb, path)])
    courses = [screen("timeline", path, *words) for words in ((), ("--layer", "blocks"))]
    most = [re.search(r": ([0-9.]+ MiB) at most", course).group(1) for course in courses]
    fact(most == ["%.1f MiB" % (int(peak) / (1 << 20)), "%.1f MiB" % (int(reserved) / (1 << 20))], "timeline shows the course of the layer", courses)
    exported = subprocess.run([MEMSHIM, "export", "--format", "folded", path], env=native_environment(), text=True, capture_output=True, check=False).stdout
    fact(sum(int(line.rsplit(" ", 1)[1]) for line in exported.splitlines()) == int(peak), "folded stacks are those of the tensors at their peak", [exported[:300]])


def check_categories():
    """Tensors are told by what they are for, as their frames say: of a report whose functions were given PyTorch's names."""
    _, path = play("torch", "2")
    named = os.path.join(TMP, "named.json")
    subprocess.run([MEMSHIM, "symbolize", "-f", "-o", named, path], env=native_environment(), check=True, capture_output=True)
    report = read(named)
    for frame in report["frames"]:
        if frame.get("function", "").startswith("forward"):
            frame["function"] = "torch::autograd::Node::operator()(std::vector<at::Tensor>&&)"
        elif frame.get("function", "").startswith("optimizer"):
            frame.update(kind="python", file="/usr/lib/torch/optim/adam.py", line=179, function="Adam._init_group")
    with open(named, "w", encoding="utf-8") as file:
        json.dump(report, file)
    rows = {row["owner"]: row["live_bytes"] for row in json.loads(screen("owners", named, "--json"))["owners"]}
    fact(set(rows) == {"gradients", "optimizer state", "cached by PyTorch"} and sum(rows.values()) == report["heaps"][0]["reserved_bytes"],
         "tensors are told by what they are for", [rows])
    blocks = {row["owner"] for row in json.loads(screen("owners", named, "--json", "--layer", "blocks"))["owners"]}
    fact(not blocks & {"gradients", "optimizer state"}, "and blocks by whose they are", [blocks])


def check_refused(release):
    """No memory for a piece is one event, of the pieces' layer; what the vendor refused for it is a part of it."""
    done, path = play("refused", str(release), MEMSIM_MEMORY="64M")
    told = done.stdout.splitlines()
    report = read(path)
    live, reserved = map(int, told[0].split())
    rows = [(row["requested"] >> 20, row["kind"], row["cause"], row["refused"], row["live"], row["reserved"], row["api"], sum(held["bytes"] for held in row["sites"]))
            for row in report["inner_oom"]]
    fact(told[1] == "as planned" and told[2].endswith("all"), "release %d: PyTorch's own function heard of it" % release, [done.stdout, done.stderr])
    fact(rows == [(30, "inner", "fragmentation", [0, 1], live, reserved, "PyTorch", live), (60, "inner", "capacity", [2, 3], live, reserved, "PyTorch", live),
                  (10, "inner", "cache_limit", [], live, reserved, "PyTorch", live)], "release %d: an allocator that has no memory is told, with why" % release, rows)
    fact([row["requested"] >> 20 for row in report["oom"]] == [30, 30, 60, 60, 40, 50], "and what the vendor refused stands in its own list", [report["oom"]])
    fits = [[(row["how"], row.get("bytes", row.get("value"))) for row in oom["would_fit"]] for oom in report["inner_oom"]]
    fact(fits == [[("try", "expandable_segments:True"), ("free", 6 << 20)], [("ask_for_less", 24 << 20)], [("policy", "0.938")]], "what would have made it fit", fits)
    shown = [row["requested"] >> 20 for row in json.loads(screen("oom", path, "--json"))["oom"]]
    blocks = [row["requested"] >> 20 for row in json.loads(screen("oom", path, "--json", "--layer", "blocks"))["oom"]]
    fact((shown, blocks) == ([30, 60, 10, 50], [30, 30, 60, 60, 40, 50]), "the screen has each event once, and not what was had when it was asked again", [shown, blocks])
    fact([row["requested"] >> 20 for row in report["oom"] if row.get("answered")] == [40], "of which the report says so", [report["oom"]])
    text = screen("oom", path)
    fact("PyTorch of 30.0 MiB (a tensor) on device 0, in ask" in text and "%d.0 MiB were allocated by tensors, %d.0 MiB reserved by PyTorch, " % (live >> 20, reserved >> 20) in text
         and "20.0 MiB by PyTorch, in forward" in text and "cudaMalloc of 50.0 MiB on device 0, in refused" in text and text.count("this may have, as only another run can tell:") == 1,
         "in words", [text])
    found = [row["message"] for row in findings(path) if row["rule"] == "out_of_memory"]
    fact(len(found) == 4 and "PyTorch of 30.0 MiB failed: 20.0 MiB were allocated by tensors, cause fragmentation" in found, "findings too", found)
    fact("Out of memory: cudaMalloc of 50.0 MiB" in screen("summary", path) and "none" not in screen("validate", path), "and the summary's last", [screen("summary", path), screen("validate", path)])


def check_replayed():
    """With a trace of the run, settings of PyTorch's are tried, and not only told to be worth a try."""
    done, path = play("refused", "2", MEMSIM_MEMORY="64M", MEMSHIM_TRACE=os.path.join(TMP, "refused.trace"))
    rows = json.loads(screen("oom", path, "--json"))["oom"]
    tried = [(len(row.get("replayed", [])) > 10, any(each["fits"] for each in row.get("replayed", []))) for row in rows]
    fact(done.returncode == 0 and tried == [(True, False), (True, False), (False, False), (False, False)], "by its trace no setting of PyTorch's serves what is too large", [tried])
    text = screen("oom", path)
    fact(text.count("by its trace, no setting of PyTorch's allocator would have served it") == 2 and "only another run can tell" not in text, "in words", [text])
    report, mib = read(path), 1 << 20
    report["run"]["trace"] = os.path.join(TMP, "made.trace")
    report["inner_oom"] = [{**report["inner_oom"][0], "requested": 40 * mib, "reserved": 40 * mib, "device_free": 24 * mib}]
    with open(report["run"]["trace"], "w", encoding="ascii") as file:  # what is kept of a segment splits it
        file.write("# memshim 0.9.0, run %x: made, process %d\n" % (report["run"]["start_unix_ns"], report["run"]["pid"]))
        file.write("1 A 1 %d 0 1 0x1000\n2 F 1 %d 0\n3 A 2 %d 0 1 0x1000\n" % (40 * mib, 40 * mib, 9 * mib))
    with open(path + ".made", "w", encoding="utf-8") as file:
        json.dump(report, file)
    text = screen("oom", path + ".made")
    fact("these settings of PyTorch's allocator would have served it:\n    PYTORCH_ALLOC_CONF=expandable_segments:True, with 60.0 MiB reserved\n" in text, "and those that would are told", [text])
    os.unlink(os.path.join(TMP, "refused.trace"))
    fact("only another run can tell" in screen("oom", path), "without the trace nobody knows", [])


def check_measured():
    """A run's trace says what PyTorch's settings would have reserved: findings and oom end in it, and the page has it. Batches grow, so segments are each too short for the next one."""
    path, mib = play("refused", "2", MEMSIM_MEMORY="64M", MEMSHIM_TRACE=os.path.join(TMP, "unused.trace"))[1], 1 << 20
    report, trace = read(path), os.path.join(TMP, "growing.trace")
    report["run"]["trace"] = trace

    def screens(block=2976, **changes):
        """What findings, its JSON, oom and the page have of a run that took so many MiB."""
        lines = []
        for step in range(12):
            told = [f"{4 * step + i + 1} {(40 + 4 * step) * mib} 0" for i in range(4)]
            lines += [f"A {words} 1 {0x7f0000000000 + i * 4096:#x}\n" for i, words in enumerate(told)] + [f"F {words}\n" for words in told]
        with open(trace, "w", encoding="ascii") as file:
            file.write("# memshim 0.9.0, run %x: made, process %d\n0 a 1 %d 0 1 0x7f0000000000\n" % (report["run"]["start_unix_ns"], report["run"]["pid"], block * mib))
            file.write("".join(f"{number} {line}" for number, line in enumerate(lines)))
        with open(path + ".grown", "w", encoding="utf-8") as file:
            json.dump({**report, **changes}, file)
        page, heads = os.path.join(TMP, "grown.html"), []
        screen("html", path + ".grown", "-f", "-o", page)
        with open(page, encoding="utf-8") as file:
            heads = [page_format.unpack(block)[0].get("what_if") for block in page_format.Page(file.read()).blocks]
        return [screen("findings", path + ".grown"), json.loads(screen("findings", path + ".grown", "--json")).get("what_if"), screen("oom", path + ".grown"), heads]

    findings_text, told, oom_text, heads = screens()
    reserved = {way["settings"]: way["reserved_bytes"] for way in told["ways"]}
    fact(told["reserved_bytes"] == reserved[""] == 2976 * mib and told["best_bytes"] == reserved[told["best"]] <= min(reserved.values()) * 1.02 < 1488 * mib and "expandable_segments:True" in told["best"],
         "each setting is tried on the whole run", [told])
    line = "\nMeasured  2.91 GiB reserved, %d.0 MiB with PYTORCH_ALLOC_CONF=%s: memshim tune " % (told["best_bytes"] // mib, told["best"])
    fact(line in findings_text and findings_text.endswith("growing.trace tells more\n") and oom_text.endswith("growing.trace tells more\n") and line in oom_text, "findings and oom end in it", [findings_text, oom_text, line])
    fact(heads == [told, told], "the page has it in both layers", [heads])
    for why, block, changes in (("the model does not have what the run had", 1024, {}), ("another allocator gave the tensors", 2976, {"heaps": [{**row, "name": "CuPy"} for row in report["heaps"]]}),
                                ("the trace is another run's", 2976, {"run": {**report["run"], "pid": 1}}), ("there is no trace", 2976, {"run": {**report["run"], "trace": trace + ".none"}})):
        findings_text, told, oom_text, heads = screens(block, **changes)
        fact(told is None and heads == [None, None] and "Measured" not in findings_text + oom_text, "nothing is told where " + why, [told, heads, findings_text])


plan(93)
for release in range(3):
    check_release(release)
check_segments()
check_threads()
check_killed()
check_child()
check_off()
check_pools()
check_arenas()
check_wrong()
check_many()
check_measured()
check_trace()
check_emptied()
check_hopeless()
check_elsewhere()
check_growth()
check_layers()
check_categories()
check_replayed()
for release in (1, 2):
    check_refused(release)
