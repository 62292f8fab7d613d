#!/usr/bin/env python3
"""What processes that run have in tensors, out of their ledgers alone: memshim top in lines, JSON and on the screen, and memshim metrics; the
figures are those of the allocator's own book."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from innerlib import begin, play  # noqa: E402
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("export", "ledger")]
import readers  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, native_environment, plan, skip  # noqa: E402
from watched import until  # noqa: E402

TMUX = ["tmux", "-L", "memshim-inner-%d" % os.getpid(), "-f", "/dev/null"]


def command(*words, **more):
    return subprocess.run([MEMSHIM, *words], env=native_environment(MEMSHIM_DIR=TMP, **more), text=True, capture_output=True, timeout=100, check=False).stdout


def mib(figure):
    return "%.1f MiB" % (figure / (1 << 20)) if figure >= 1 << 20 else "%.1f KiB" % (figure / 1024)


def check_top(pid, live, count, peak, reserved):
    row = json.loads(command("top", "--json", "-n", "1", str(pid)))["rows"][0]
    told = [row[name] for name in ("inner_live_bytes", "inner_live_count", "inner_peak_bytes", "inner_held_bytes", "live_bytes")]
    fact(told == [live, count, peak, reserved, reserved], "top's JSON has the tensors of a process that runs", [row, (live, count, peak, reserved)])
    lines = command("top", "-n", "1", str(pid), COLUMNS="200").splitlines()
    fact("TENSORS" in lines[0] and "CACHED" in lines[0] and re.findall(r"[\d.]+ [KM]iB", lines[1])[3:5] == [mib(live), mib(reserved - live)],
         "and its lines two columns", lines)
    narrow = command("top", "-n", "1", str(pid), COLUMNS="80").splitlines()
    fact("TENSORS" in narrow[0] and "PHASE" not in narrow[0], "of which the first is on a narrow terminal, too", narrow)


def check_metrics(pid, live, count, peak, reserved):
    series = readers.metrics(command("metrics", "--textfile", "-").encode(), False)

    def of(name):
        return sum(value for labels, value in series.get(name, {}).items() if ("pid", str(pid)) in labels)
    told = [of("memshim_tensors_device_" + name) for name in ("live_bytes", "live_blocks", "peak_live_bytes", "reserved_bytes")]
    fact(told == [live, count, peak, reserved] and of("memshim_device_live_bytes") == reserved, "metrics have both layers, by names of their own", [told, sorted(series)])
    fact(of("memshim_tensors_owner_live_bytes") == reserved and of("memshim_tensors_owner_peak_bytes") == peak, "and whose tensors are, with what is cached", [series])


def check_export():
    done, path = play("torch", "2")
    live, _, _, reserved = map(int, done.stdout.split()[:4])
    for words, names in (((), {"memshim_tensors_device_live_bytes": live, "memshim_device_live_bytes": reserved}), (("--layer", "blocks"), {"memshim_device_live_bytes": reserved}),
                         (("--layer", "tensors"), {"memshim_tensors_device_live_bytes": live, "memshim_device_live_bytes": 0})):
        series = readers.metrics(subprocess.run([MEMSHIM, "export", "--format", "prometheus", *words, path], env=native_environment(), capture_output=True, check=True).stdout, False)
        told = {name: sum(series.get(name, {}).values()) for name in names}
        fact(told == names, "an export has them, too: %s" % (" ".join(words) or "as it is"), [told, names])


def check_screen(pid):
    """Enter shows the lines of tensors, or of blocks."""
    for words, there, absent in (((), "forward", "cudaMalloc"), (("--layer", "blocks"), "cudaMalloc", "reportMemoryUsage")):
        name = "the screen shows the call sites of %s" % ("blocks" if words else "tensors")
        if not shutil.which("tmux"):
            skip(name, "tmux is not installed")
            continue
        def shown():
            return subprocess.run([*TMUX, "capture-pane", "-p"], capture_output=True, text=True, timeout=60, check=False).stdout
        subprocess.run([*TMUX, "new-session", "-d", "-x", "200", "-y", "10", MEMSHIM, "top", *words, str(pid)], env=native_environment(MEMSHIM_DIR=TMP), check=True, timeout=60)
        until(lambda: str(pid) in shown())
        subprocess.run([*TMUX, "send-keys", "Enter"], check=True, timeout=60)
        found = until(lambda: there in shown())
        text = shown()
        subprocess.run([*TMUX, "kill-server"], check=False, timeout=60)
        fact(found and absent not in text, name, text.splitlines())
        time.sleep(0.1)


plan(10)
process, line = begin("wait")
book = list(map(int, line.split()[:4]))
try:
    check_top(process.pid, *book)
    check_metrics(process.pid, *book)
    check_export()
    check_screen(process.pid)
finally:
    process.kill()
    process.wait()
