"""memshim tune: what it tells comes true, is the same each time, goes on where it was, and is written and taken. Prints TAP."""

import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests/tune"))
import told  # noqa: E402  pylint: disable=wrong-import-position

TMP, BIN, TOP = os.environ["TEST_TMP"], os.environ["TEST_BIN"], os.environ["top_srcdir"]
MIB = 1 << 20
WATCHED = os.environ.get("TEST_SANITIZE")  # by a sanitizer: a program without it cannot have the library preloaded, and all takes five times as long
FACTS = []


def fact(holds, name):
    """One line of TAP, at once."""
    FACTS.append(bool(holds))
    print(f"{'ok' if holds else 'not ok'} {len(FACTS)} - {name}", flush=True)


def run(*arguments, **more):
    """The command, as it was typed."""
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, check=False, env=told.environment(**more), timeout=300)


def write_trace(name, events):
    """Pairs of an id and a size; no size is a free."""
    path, sizes = os.path.join(TMP, name), {}
    with open(path, "w", encoding="ascii") as file:
        file.write("# memshim 0.9.0, run 0: made, process 1\n")
        for number, (block, size) in enumerate(events):
            sizes[block] = size or sizes[block]
            file.write(f"{number} {'a' if size else 'f'} {block} {sizes[block]} 0\n")
    return path


def kept(name):
    """A kept trace."""
    return next(path for path in told.traces_in(TMP, []) if name in path)


def look_at_truth():
    """A part of told.py: a kept trace, a made-up one, and a program."""
    made = next(path for path in told.traces_in(TMP, [77]) if "decoding-77" in path)
    for part in (told.try_trace(kept("convnet")), told.try_trace(made), told.try_trace(kept("convnet"), "--goal", "memory"),
                 told.try_program(["shapes", "decode"])):
        fact(told.is_right(part) and part["line"] != "(the defaults)",
             f"{part['name']}: {part['line']} was told {part['told']}, seen {part['seen']}, defaults {part['defaults']}")


def look_at_table():
    """The rows, and that nothing in them depends on the machine's speed."""
    path = kept("dataframe")
    first, again = told.tune(path), told.tune(path)
    fact(first == again, "the same trace has the same answer")
    held = write_trace("held.trace", [(block, 700000 + 4096 * block) for block in range(1, 25)])
    fact(not run("tune", path).stderr and not run("tune", held).stderr, "and no replay has anything to say, also on devices that are too small for it")
    best, defaults = next(part for part in first["rows"] if part["chosen"]), first["rows"][0]
    fact(not defaults["settings"] and not defaults["chosen"] and " ".join("=".join(pair) for pair in best["settings"].items()) == first["line"],
         "the defaults are a row, and the line is the chosen one's settings")
    fact(best["reserved_bytes"] <= defaults["reserved_bytes"] and best["steps"]["lost_ns"] <= defaults["steps"]["lost_ns"] + 10000,
         "neither memory nor time is worse than with the defaults")
    for goal, key in (("memory", lambda part: part["reserved_bytes"]), ("time", lambda part: part["steps"]["lost_ns"])):
        answer = told.tune("--goal", goal, path)
        chosen = next(part for part in answer["rows"] if part["chosen"])
        fact(all(key(chosen) <= 1.002 * key(part) for part in answer["rows"] + first["rows"]), f"--goal {goal}: nothing that is shown is better")
    live = first["traces"][0]["live_peak_bytes"]
    fact(all(live <= part["least_device_bytes"] <= part["reserved_bytes"] * 1.07 and part["least_device_bytes"] % (2 * MIB) == 0
             for part in first["rows"] if "least_device_bytes" in part), "least devices are between what is live and what is reserved")
    least = defaults["least_device_bytes"]
    fits = [told.tune("--device", str(bytes_), path)["rows"][0]["fits"] for bytes_ in (least, least - 2 * MIB)]
    fact(fits == [True, False], "the defaults fit on the least device, and not on one a granule smaller")


def look_at_defaults():
    """Where nothing helps; where nothing fits; a step that repeats."""
    flat = write_trace("flat.trace", [(1, 8 * MIB)])
    done = run("tune", flat)
    fact(done.returncode == 0 and "there is nothing to set" in done.stdout, "where the defaults are best, that is the answer")
    fact(told.tune(flat)["line"] == "", "and the line is empty")
    done = run("tune", "--device", "6M", flat)
    fact(done.returncode == 1 and "does not fit" in done.stdout and "with none of" in done.stdout, "a device on which nothing fits: status 1")
    step = [(block, size) for block, size in enumerate((3 * MIB, 5 * MIB, 700, 9 * MIB, MIB), 100)]
    events = [(block, 1000 * block) for block in range(1, 50)]
    for _ in range(30):
        events += step + [(block, 0) for block, _ in step]
    answer = told.tune(write_trace("steps.trace", events))["traces"][0]
    fact(answer["step_events"] == 10 and answer["steps"] >= 28 and 40 <= answer["warm_up_events"] <= 69, f"steps are found: {answer}")
    both = told.tune(flat, kept("dataframe"))
    fact(len(both["traces"]) == 2 and both["rows"][0]["reserved_bytes"] == told.tune(kept("dataframe"))["rows"][0]["reserved_bytes"],
         "of several traces the peak is of the largest")


def look_at_files():
    """--apply, and run --config, which takes it."""
    out = os.path.join(TMP, "settings")
    done = run("tune", "--apply", out, kept("convnet"))
    with open(out, encoding="utf-8") as file:
        text = file.read()
    line = re.search(r"\n {9}(MEMSHIM_.*)\n", done.stdout).group(1)
    values = dict(re.findall(r"^(\w+) = (\S+)$", text, re.M))
    fact({"MEMSHIM_" + name: value for name, value in values.items()} == dict(word.split("=") for word in line.split()),
         "--apply writes what the line says")
    fact(len(values) == len(re.findall(r"^# .*\n\w+ = ", text, re.M)), "each with a comment")
    fact(run("tune", "--apply", out, kept("convnet")).returncode == 2 and run("tune", "-f", "--apply", out, kept("convnet")).returncode == 0,
         "a file that is there is replaced with -f alone")
    done = run("run", "--config", out, "--sim", "-q", "-o", TMP + "/r.json", "--", told.BUILD + "/tests/programs/shapes", "convnet")
    with open(TMP + "/r.json", encoding="utf-8") as file:
        report = json.load(file)
    fact(done.returncode == 0 and report["devices"][0]["vendor_calls"] <= 5, f"run --config takes it: {done.stderr}")
    done = run("run", "--config", TMP + "/none", "--sim", "--", "true")
    fact(done.returncode == 2 and done.stderr.count("\n") == 1 and TMP + "/none" in done.stderr, "and names one that is not there")


def look_at_recorded():
    """A program with one thread that queues nothing is what its replay is; a small device, on which settings fit that do not alone."""
    answer = told.tune("--sim", "--", told.BUILD + "/tests/programs/shapes", "convnet")
    fact(answer["recorded"]["seen"] == answer["recorded"]["replayed"] and answer["device_bytes"] == 8 << 30,
         f"the recorded run is what its replay is, on the device that it had: {answer.get('recorded')}")
    done = run("tune", "--json", "--sim", "--", told.BUILD + "/tests/programs/shapes", "convnet", MEMSHIM_PACK="all")
    fact("recorded" not in json.loads(done.stdout), "with settings of the user's own the two are not compared")
    answer = told.tune("--device", "2450M", "--goal", "memory", kept("transformer"))
    fact(answer["tried"] > 30 and len(answer["line"].split()) > 1 and not answer["rows"][0]["fits"], f"pairs are tried where few fit alone: {answer['line']}")


def look_at_interruption():
    """What was replayed is kept until it is over."""
    path, cache = kept("transformer"), os.environ["XDG_CACHE_HOME"] + "/memshim/tune-*"
    whole = told.tune(path)
    fact(not glob.glob(cache), "what is over leaves nothing behind")
    child = subprocess.Popen([BIN, "tune", "--json", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=told.environment())
    while child.poll() is None and not any(os.path.getsize(file) > 2000 for file in glob.glob(cache)):
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    child.wait()
    fact(child.returncode == -signal.SIGINT and len(glob.glob(cache)) == 1, "what is interrupted leaves a file")
    with open(glob.glob(cache)[0], "a", encoding="ascii") as file:
        file.write("0123456789abcdef 1 77")
    done = run("tune", "--json", path)
    fact(done.returncode == 0 and "goes on from there" in done.stderr and json.loads(done.stdout) == whole,
         "the same command goes on from there, with the same answer, past a line that was cut")
    fact(not glob.glob(cache), "and then it is gone")


def look_at_refusals():
    """One line each."""
    bad = write_trace("bad.trace", [(1, 10)])
    with open(bad, "a", encoding="ascii") as file:
        file.write("1 f 2 10 0\n")
    empty = os.path.join(TMP, "empty.trace")
    with open(empty, "w", encoding="ascii") as file:
        file.write("# memshim 0.9.0, run 0: x, process 1\n")
    for arguments, words in (((), "TRACE"), (("--goal", "speed", bad), "memory, time or both"), (("--device", "1K", bad), "from 2M"),
                             (("--device", "x", bad), "--device 'x'"), ((bad,), "frees what is not there"), ((TMP + "/none",), "cannot read"),
                             ((empty,), "nothing was allocated"), (("--check", bad), "--"), (("--sim", bad), "--"), (("--",), "traces"),
                             (("--sim", "--", "true"), "allocated no memory"))[:-1 if WATCHED else None]:
        done = run("tune", *arguments)
        fact(done.returncode == 2 and done.stderr.count("\n") == 1 and words.lower() in done.stderr.lower() and not done.stdout,
             f"refused: {' '.join(arguments)}: {done.stderr.strip()}")


def look_at_costs():
    """costs.def has what the file of the card says."""
    with open(TOP + "/docs/user/hardware/nvidia-h100-80gb-hbm3/costs-followed.json", encoding="utf-8") as file:
        native = {(each["call"], each["bytes"]): each["native_ns"] for each in json.load(file)["rows"]}
    with open(TOP + "/src/cli/tune/costs.def", encoding="utf-8") as file:
        rows = {name: tuple(map(int, values)) for name, *values in re.findall(r"^MS_COST\((\w+), \w+, (\d+), (\d+), (\d+)\)", file.read(), re.M)}

    def of(call):
        small, page, large = (native[call, size] for size in (4096, 2 * MIB, 1024 * MIB))
        return small, page - small, large - page
    fact(rows["cuMemAlloc_v2"] == of("cudaMalloc") and rows["cuMemFree_v2"] == of("cudaFree"), "what cudaMalloc and cudaFree cost is what was measured")
    miss, hit = of("cudaMallocAsync_miss"), native["cudaMallocAsync_hit", 4096]
    fact(rows["cuMemAllocAsync"] == (hit, native["cudaMallocAsync_miss", 4096] - hit, native["cudaMallocAsync_miss", 1 << 30] - native["cudaMallocAsync_miss", 4096])
         and miss, "what a pool's unit costs, too")
    for name in ("cuMemCreate", "cuMemRelease"):
        fact(rows[name] == (native[name, 2 * MIB], 0, native[name, 1 << 30] - native[name, 2 * MIB]), f"{name} as well")
    fact(all(rows[name][0] == native[name, 2 * MIB] for name in ("cuMemMap", "cuMemUnmap", "cuMemSetAccess")), "and what maps")


def look_at_pytorch():
    """Batches that grow: PyTorch's segments are each too short for the next one, and expandable ones grow."""
    path, blocks, lines = os.path.join(TMP, "growing.trace"), 0, []
    for step in range(12):
        sizes = [(40 + 4 * step) * MIB] * 4
        lines += [f"A {blocks + i + 1} {size} 0 1 {0x7f0000000000 + i * 4096:#x}" for i, size in enumerate(sizes)] + [f"F {blocks + i + 1} {size} 0" for i, size in enumerate(sizes)]
        blocks += 4
    with open(path, "w", encoding="ascii") as file:
        file.write("# memshim 0.9.0, run 1: made, process 1\n0 a 1 %d 0 1 0x7f0000000000\n" % (2976 * MIB) + "".join(f"{number} {line}\n" for number, line in enumerate(lines)))
    rows = told.tune(path)["pytorch"]
    plain, best = rows[0], next(row for row in rows if row["chosen"])
    fact("expandable_segments:True" in best["settings"] and best["reserved_bytes"] < plain["reserved_bytes"] // 2 and "excludes" in best,
         f"PyTorch's own settings: {best['settings']} reserves {best['reserved_bytes'] // MIB} MiB for {plain['reserved_bytes'] // MIB}, and what it does not go with is told")
    driver = next(row for row in rows if row["settings"] == "backend:cudaMallocAsync")
    fact(driver["vendor_calls"] == len(lines) and 4 * 84 * MIB <= driver["reserved_bytes"] <= plain["reserved_bytes"] and driver["waits"] == 0 and driver["is_least"] and not driver["chosen"], f"its other backend asks the driver for each tensor: {driver}")
    tight = {row["settings"]: row["reserved_bytes"] for row in told.tune("--device", "3000M", path)["pytorch"]}
    fact(tight["per_process_memory_fraction:1.0,garbage_collection_threshold:0.8"] <= (2400 + 84) * MIB < tight[""], f"on a device that becomes full, a threshold of collection gives back: {tight}")
    done = run("tune", path)
    fact(f"PYTORCH_ALLOC_CONF={best['settings']}\n" in done.stdout and "vLLM" in done.stdout, "and the line to paste is there")
    table = done.stdout[done.stdout.index("PyTorch's own settings"):done.stdout.index("Least  is what backend:cudaMallocAsync")]
    figures = re.findall(r"\S+ [MG]iB .* (?:ms|us|s)$", table, re.M)
    fact("backend:cudaMallocAsync" in table and len(figures) >= 3 and len(set(figures)) == len(figures) and max(map(len, table.splitlines()[1:])) <= 80, "no two rows have the same figures, and the table has 80 columns")
    with open(path, encoding="ascii") as file:
        text = file.read().replace(str(2976 * MIB), str(1024 * MIB))
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    done = run("tune", path)
    fact("None   is advised: the run itself had 1.00 GiB" in done.stdout and "PYTORCH_ALLOC_CONF" not in done.stdout, "but not where the run itself had something else")


def look_at_clients():
    """What clients asked for: the line comes true, and PyTorch's settings reserve what its own allocator did with each."""
    for path in told.recorded_in(TMP):
        part, settings = told.try_trace(path), told.pytorch_told(path)
        fact(told.is_right(part), f"{part['name']}: {part['line']} was told {part['told']}, seen {part['seen']}")
        off = {words: (said, seen) for words, (said, seen, _) in settings.items() if told.pytorch_off(words, said, seen)}
        chosen = [(said, seen) for said, seen, best in settings.values() if best]
        fact(not settings or (len(settings) == 16 and not off and chosen[0][1] <= settings[""][1]), f"{part['name']}: PyTorch reserves what was told of {len(settings)} settings, no more with the chosen one: {off} {chosen}")


def look_at_foreign():
    """A program that asked by HIP, or by Ascend's interface, of tensors: that is said, and PyTorch's settings are those that it has there."""
    for api, name in (("hip", "HIP"), ("acl", "Ascend"), ("cuda", None)):
        path = os.path.join(TMP, api + ".trace")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"# memshim 0.9.0, run 1: made, process 1\n# stream 1: {api} device 1, handle 0x0\n0 a 1 {20 * MIB} 1 1 0x7f0000000000 device\n")
            file.write(f"1 A 1 {9 * MIB} 1 1 0x7f0000000000 inner\n2 A 2 {9 * MIB} 1 1 0x7f0000900000 inner\n3 F 1 {9 * MIB} 1\n")
        screens = [run(verb, path).stdout for verb in ("tune", "fit")]
        answers = [json.loads(run(verb, "--json", path).stdout) for verb in ("tune", "fit")]
        settings = [row["settings"] for row in answers[0].get("pytorch", [])]
        fact([f"asked for by {name}" in screen for screen in screens] == [name is not None] * 2 and [answers[0]["traces"][0].get("asked_by"), answers[1].get("asked_by")] == [name, name],
             f"{api}: by whom it was asked for")
        fact((len(settings) > 5) == (api != "acl") and any("expandable" in text for text in settings) == (api == "cuda")
             and any("expandable" in way["way"] for way in answers[1]["ways"]) == (api == "cuda"), f"{api}: which settings are tried {settings}")


look_at_costs()
look_at_refusals()
look_at_defaults()
look_at_files()
look_at_interruption()
if not WATCHED:
    look_at_table()
    look_at_recorded()
    look_at_pytorch()
    look_at_foreign()
    look_at_clients()
    look_at_truth()
print(f"1..{len(FACTS)}")
sys.exit(0 if all(FACTS) else 1)
