#!/usr/bin/env python3
"""What the command says of small programs shaped after public reports: their first screen, and what it sends on to."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
import hooklib  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, shim_environment  # noqa: E402

HERE = os.path.join(os.environ["top_builddir"], "tests", "cases")
os.chdir(TMP)


def command(*arguments, **more):
    """The command; what it printed on both outputs is in .said."""
    done = subprocess.run([MEMSHIM, *map(str, arguments)], env=dict(os.environ, **more), text=True, capture_output=True,
                          timeout=250, check=False)
    done.said = done.stdout + done.stderr
    return done


def followed(name, program, *arguments, options=(), **more):
    """A program of this folder under `memshim run`; its report is NAME."""
    return command("run", "--sim", "-f", "-o", name, *options, "--", os.path.join(HERE, program), *arguments, **more)


def lines(text, start):
    return [line for line in text.splitlines() if line.startswith(start)]


def wanting():
    """Who ended for want of memory is told so first, with the lines that asked and held, and the same next verb everywhere."""
    done = followed("wanting.json", "wanting", "exit", MEMSIM_MEMORY="2G")
    said = [line for line in done.stderr.splitlines() if line.startswith("memshim: ")]
    fact(done.returncode == 1 and said[0].startswith("memshim: Out of memory: cudaMalloc of 100.0 MiB on device 0, in grow_cache at "),
         "the closing lines begin with what was asked for, and by which line", said)
    fact("held most then: " in said[1] and "by cudaMalloc, in grow_cache at " in said[1] and "300.0 MiB by cudaMalloc, in load_weights" in
         said[1], "then comes who held it", said)
    fact(said[-1] == "memshim: next: memshim oom wanting.json", "and the verb that says more is oom", said)
    screen = command("summary", "wanting.json").stdout
    names = [line.split()[0] for line in screen.splitlines() if line[:1].isalpha()]
    fact(names.index("Out") < names.index("Peak"), "the summary has it before all else", [screen])
    fact(screen.splitlines()[-1] == "Next  memshim oom wanting.json", "and names the same verb", [screen])
    done = followed("few.json", "wanting", "few", MEMSIM_MEMORY="2G")
    screen = command("summary", "few.json").stdout
    fact(lines(done.stderr, "memshim: next:")[0].split("next: ")[1] == screen.splitlines()[-1].split("Next  ")[1],
         "without want of memory both name the same verb too", [done.stderr, screen])
    rows = json.loads(command("findings", "--json", "wanting.json").stdout)["findings"]
    fact(rows[0]["rule"] == "out_of_memory" and "grow_cache" in rows[0]["advice"] and rows[0]["own"]["function"] == "grow_cache",
         "it is the first finding, with its line", rows[:1])
    for limit, status in (("0", 1), ("1", 0), ("process=0", 1)):
        fact(command("check", "--max-oom", limit, "wanting.json").returncode == status, "check --max-oom %s ends with %d" % (limit, status), [])
    said = command("check", "--max-oom", "0", "wanting.json").stdout
    fact("FAILED  out of memory: 1, allowed 0 (--max-oom 0)" in said and " by grow_cache at " in said, "with a number and who held most", [said])
    for name, wanted in (("refused", 23), ("few", 0)):
        done = followed("gate.json", "wanting", name, options=["-q", "--fail-on-oom"], MEMSIM_MEMORY="2G")
        fact(done.returncode == wanted, "run --fail-on-oom of %s ends with %d" % (name, wanted), [done.said])


def incomplete():
    """A killed process is no measure, unless it is told to be one, and what it held is no leak."""
    done = followed("killed.json", "wanting", "kill", options=["-q"], MEMSIM_MEMORY="1G")
    done = command("check", "--max-leak", "0", "killed.json")
    fact(done.returncode == 2 and "--incomplete" in done.stderr, "check refuses the report of a killed process", [done.said])
    fact(command("check", "--incomplete", "--max-leak", "0", "killed.json").returncode == 0, "and takes it when told", [])
    followed("few.json", "helper", 1, options=["-q"])
    with open("few.json", encoding="utf-8") as file:
        report = json.load(file)
    report["run"]["complete"] = False
    with open("part.json", "w", encoding="utf-8") as file:
        json.dump(report, file)
    done = command("check", "--max-leak", "1G", "part.json")
    fact(done.returncode == 2 and "--incomplete" in done.stderr, "so is a record that could not be read whole", [done.said])
    screen = command("summary", "killed.json").stdout
    fact("Leak  none" in screen and "held when it was ended" in screen, "what it held is told as that", [screen])
    rules = [row["rule"] for row in json.loads(command("findings", "--json", "killed.json").stdout)["findings"]]
    fact("leak" not in rules and "growth" not in rules, "and is no finding", rules)


def ledgers():
    """Every verb that takes a report takes the ledger of a process that was killed, and leaves it as it is."""
    environment = shim_environment(os.path.join(TMP, "none.json"), MEMSHIM_LOG="none", MEMSIM_MEMORY="1G", MEMSHIM_DIR=TMP)
    subprocess.run([os.path.join(HERE, "wanting"), "kill"], env=environment, capture_output=True, timeout=250, check=False)
    found = [name for name in os.listdir(TMP) if name.endswith(".ledger")]
    fact(len(found) == 1, "a killed process leaves its ledger", found)
    with open(found[0], "rb") as file:
        before = file.read()
    command("recover", "-o", "recovered.json", found[0])  # it removes the ledger
    with open(found[0], "wb") as file:
        file.write(before)
    for verb in (["summary"], ["leaks"], ["frag"], ["contexts"], ["oom"], ["phases"], ["peak"], ["owners"], ["findings"], ["tree"],
                 ["validate"], ["check", "--incomplete", "--max-leak", "2G"], ["merge", "-f", "-o", "merged.json"],
                 ["html", "-f", "-o", "page.html"], ["export", "--format", "folded"], ["flamegraph", "-f", "-o", "flame.svg"],
                 ["timeline", "-f", "-o", "timeline.json"], ["symbolize", "-f", "-o", "named.json"], ["suppress"], ["diff", "recovered.json"]):
        want, got = (command(*verb, name) for name in ("recovered.json", found[0]))
        fact(got.returncode == want.returncode and "no JSON" not in got.said and
             got.stdout.replace(found[0], "recovered.json") == want.stdout, "memshim %s reads a ledger" % verb[0], [want.said, got.said])
    with open(found[0], "rb") as file:
        fact(file.read() == before, "the ledger is as it was", [])
    done = command("symbolize", "-f", found[0])
    fact(done.returncode == 2 and "is a ledger" in done.stderr, "no report is put in a ledger's place", [done.said])


def classes():
    """What grows or was lost comes before what is held to the end, which is no finding; gates take one class by its word."""
    followed("few.json", "wanting", "few", options=["-q"], MEMSIM_MEMORY="2G")
    found = [(row["pattern"], row["bytes"] >> 20) for row in json.loads(command("leaks", "--json", "few.json").stdout)["leaks"]]
    fact(found == [("lost", 600), ("held", 300)], "the cache is lost, the weights are held to the end, in this order", found)
    screen = command("summary", "few.json").stdout
    fact("Leak  900.0 MiB never freed, in 7 blocks: 600.0 MiB lost, 300.0 MiB held to the end" in screen and "load_weights" not in
         screen[screen.index("Leak"):], "the summary has the classes with their sums, and no line of what is held", [screen])
    said = command("findings", "few.json").stdout
    fact("free what grow_cache" in said and "load_weights" not in said, "what is held to the end is no finding", [said])
    for classes, status in (("growing=0", 0), ("lost=600M", 0), ("lost=599M", 1), ("held=0", 1), ("context=0", 0), ("900M", 0), ("899M", 1)):
        done = command("check", "--max-leak", classes, "few.json")
        fact(done.returncode == status, "check --max-leak %s ends with %d" % (classes, status), [done.said])
    for classes, status in (("", 23), ("=growing", 0), ("=lost=600M", 0), ("=lost", 23), ("=held=1M", 23), ("=900M", 0)):
        done = followed("gate.json", "wanting", "few", options=["-q", "--fail-on-leak" + classes])
        fact(done.returncode == status, "run --fail-on-leak%s ends with %d" % (classes, status), [done.said])
    done = followed("gate.json", "wanting", "few", options=["--fail-on-leak=lots=1M"])
    fact(done.returncode == 2 and "growing, lost, held" in done.stderr, "a word that is no class is refused", [done.said])
    done = command("check", "--max-leak", "lots=1M", "few.json")
    fact(done.returncode == 2 and "growing, lost, held" in done.stderr, "by check too", [done.said])


def typed():
    """The program is called as the user called it, and no line of a leak or a finding is there twice."""
    os.symlink(os.path.join(HERE, "wanting"), "wanted")
    for name in ("typed.json", "again.json"):
        command("run", "--sim", "-q", "-f", "-o", name, "--", "./wanted", "few", MEMSIM_MEMORY="2G")
    screens = {verb[0]: command(*verb).stdout for verb in (["summary", "typed.json"], ["leaks", "typed.json"], ["findings", "typed.json"],
                                                           ["diff", "typed.json", "again.json"])}
    fact(screens["summary"].startswith("./wanted few\n") and ": ./wanted, process" in screens["diff"],
         "the program is shown as it was typed", list(screens.values()))
    place = [line for line in screens["leaks"].splitlines() if "grow_cache at " in line]
    fact(len(place) == 1 and ", by " not in screens["leaks"], "leaks says each place once, and not the program's own file", [screens["leaks"]])
    place = [line for line in screens["findings"].splitlines() if "grow_cache at " in line]
    fact(len(place) == 2 and "600.0 MiB on device" not in screens["findings"], "findings says it in what to do and where, and the size once",
         [screens["findings"]])


def callers():
    """Where one helper allocates for all, each is told with its caller, on every screen."""
    followed("calls.json", "helper", 2, options=["-q"])
    kv, weights = r"alloc at \S+helper\.c:\d+ <- kv at \S+helper\.c:\d+", r"alloc at \S+helper\.c:\d+ <- weights at \S+helper\.c:\d+"
    command("check", "--max-leak", "0", "--junit", "calls.xml", "--sarif", "calls.sarif", "-f", "calls.json")
    command("merge", "-f", "-o", "calls.job.json", "calls.json")
    for verb in (["summary"], ["leaks"], ["findings"], ["peak"], ["owners"], ["check", "--max-leak", "0"], ["suppress"]):
        said = command(*verb, "calls.json").stdout
        if verb[0] not in ("owners", "check"):
            fact(re.search(kv, said), "memshim %s tells the caller" % verb[0], [said])
        fact(verb[0] == "owners" or re.search(weights, said), "memshim %s tells the caller that matters" % verb[0], [said])
        fact("callers" not in said, "and counts none", [said])
    for name in ("calls.xml", "calls.sarif", "calls.job.json"):
        with open(name, encoding="utf-8") as file:
            text = file.read().replace("&lt;", "<").replace("\\u003c", "<").replace("&#60;", "<")
        fact(re.search(weights, text), name + " tells the caller", [text[:2000]])
    rows = json.loads(command("leaks", "--json", "calls.json").stdout)["leaks"]
    fact([[frame["function"] for frame in row["callers"]] for row in rows] == [["weights"], ["kv"]], "so does JSON", rows)
    sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "python"))
    import memshim
    report = memshim.read("calls.json")
    told = {report.callers(number).split(" (")[0] for number in range(len(report.sites))}
    fact(told == {"kv", "weights"}, "and the Python package", told)
    with open("calls.json", encoding="utf-8") as file:
        nameless = json.load(file)
    for frame in nameless["frames"]:
        if frame.get("function") in ("kv", "weights"):
            for key in ("function", "file", "line"):
                frame.pop(key, None)
    with open("nameless.json", "w", encoding="utf-8") as file:
        json.dump(nameless, file)
    said = command("leaks", "-q", "nameless.json").stdout + command("summary", "nameless.json").stdout
    fact("<- main at" in said and "+0x" not in said, "a caller without a name is no help: the next that has one is told", [said])


LIVING = """
import ctypes, sys
cuda = ctypes.CDLL("libcudart.so.13")
def hold(mib):
    block = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(mib << 20)) == 0
for mib in (300, 1, 1, 1):
    hold(mib)
for _ in range(70):
    cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 50))
print("ready", flush=True)
sys.stdin.read()
"""


def living():
    """Of a process that goes on nothing is leaked, only not freed so far, and nothing else is an alarm."""
    if hooklib.WATCHED:
        hooklib.skip("a living process", "sanitizers watch")
        return
    with open("living.py", "w", encoding="utf-8") as file:
        file.write(LIVING)
    place = {"MEMSHIM_DIR": os.path.join(TMP, "living")}
    os.mkdir(place["MEMSHIM_DIR"])
    with subprocess.Popen([MEMSHIM, "run", "--sim", "-q", "-f", "-o", "lived.json", "--", sys.executable, "living.py"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **place)) as process:
        process.stdout.readline()
        pid = re.search(r"memshim-(\d+)", next(name for name in os.listdir(place["MEMSHIM_DIR"]) if name.endswith(".ledger"))).group(1)
        command("snapshot", "-f", "-o", "living.json", pid, **place)
        metrics = command("metrics", "--textfile", "-", **place).stdout
        process.stdin.close()
        process.wait(60)
    screen = command("summary", "--all", "living.json").stdout + command("summary", "living.json").stdout
    fact("still running: figures so far" in screen and "incomplete" not in screen and "may not add up" not in screen,
         "a snapshot is told as one, without an alarm", [screen])
    said = command("leaks", "living.json").stdout + command("findings", "living.json").stdout
    fact("not freed so far" in said and "no leaks; 303.0 MiB not freed so far" in said and "never freed" not in said and "lost" not in said,
         "what it holds is not freed so far", [said])
    fact('memshim_owner_live_bytes{pid="%s"' % pid in metrics and 'owner="program"' in metrics and 'owner="unknown"' not in metrics,
         "metrics know whose a line of Python is", metrics.splitlines())
    fact(re.search(r'memshim_oom_events_total\{pid="\d+",host="[^"]*"\} 70\n', metrics), "want of memory is counted to the end",
         [line for line in metrics.splitlines() if "oom" in line])


def settings():
    """A variable that is refused runs nothing and says so; a number without a unit gets a line; advice has units."""
    done = followed("set.json", "helper", MEMSHIM_KEEP="much")
    fact(done.returncode == 2 and "nothing is run" in done.stderr and "using" not in done.stderr and "blocks" not in done.stdout,
         "a bad value is refused, and no default is promised", [done.said])
    done = followed("set.json", "helper", MEMSHIM_KEEP="500")
    fact(done.returncode == 0 and "MEMSHIM_KEEP: 500 is 500 bytes; 500M is likely meant" in done.stderr, "a bare number gets a line", [done.said])
    for value in ("0", "500M", "50%", "1048576"):
        done = followed("set.json", "helper", MEMSHIM_KEEP=value)
        fact("likely" not in done.said, "MEMSHIM_KEEP=%s gets none" % value, [done.said])
    done = command("check", "--max-frag", "10", "set.json")
    fact("--max-frag 10 is 10 bytes" in done.stderr and "%" in done.stderr, "a bare limit gets a line too", [done.said])
    fact("likely" not in command("check", "--max-leak", "0", "--max-frag", "10%", "set.json").said, "a share gets none", [])
    followed("limit.json", "wanting", "exit", options=["-q"], MEMSHIM_LIMIT="512M")
    said = command("oom", "limit.json").stdout
    fact(re.search(r"MEMSHIM_LIMIT=\d{1,4}[KMG]\n", said), "advice says how much in units", [said])


def suppressed():
    """What is suppressed is one chain of calls: another leak through the same helper is told when it comes."""
    followed("one.json", "helper", 1, options=["-q"])
    done = command("suppress", "-f", "-o", "known.supp", "one.json")
    with open("known.supp", encoding="utf-8") as file:
        written = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    fact(done.returncode == 0 and len(written) == 1 and re.fullmatch(r"chain:\^alloc\$:\d+ <- \^kv\$:\d+ <- \^main\$:\d+", written[0]),
         "the line is the chain of calls with their lines, and not the helper", written)
    known = {"MEMSHIM_SUPPRESSIONS": "known.supp"}
    fact(command("check", "--max-leak", "0", "one.json", **known).returncode == 0, "what is known passes", [])
    done = followed("two.json", "helper", 2, options=["-q", "--fail-on-leak"], **known)
    fact(done.returncode == 23 and "leaked 512.0 MiB, allowed 0 B" in done.stderr, "a leak through the same helper does not", [done.said])
    done = followed("lines.json", "helper", 3, options=["-q", "--fail-on-leak"], **known)
    fact(done.returncode == 23 and "leaked 1.0 MiB, allowed 0 B" in done.stderr, "nor does one of the same functions by another line", [done.said])
    followed("lines.json", "helper", 3, options=["-q"])
    command("suppress", "-f", "-o", "lines.supp", "lines.json")
    with open("lines.supp", encoding="utf-8") as file:
        fact(len([line for line in file if line.startswith("chain:")]) == 2, "the two have a line each", [])
    with open("any.supp", "w", encoding="utf-8") as file:
        file.write(re.sub(r":\d+", "", written[0]) + "\n")
    fact(command("check", "--max-leak", "0", "lines.json", MEMSHIM_SUPPRESSIONS="any.supp").returncode == 0, "a chain without lines fits both", [])
    with open("two.json", encoding="utf-8") as file:
        report = json.load(file)
    rows = {row["class"]: report["sites"][row["site"]]["hash"] for row in report["leaks"]}
    with open("hash.supp", "w", encoding="utf-8") as file:
        file.write("hash:%s\n" % rows["suppressed"])
    said = command("leaks", "two.json", MEMSHIM_SUPPRESSIONS="hash.supp").stdout
    fact("512.0 MiB leaked in 2 blocks" in said and "1.0 MiB more suppressed" in said, "a stack is known by its hash as well", [said])
    with open("wrong.supp", "w", encoding="utf-8") as file:
        file.write("chain:\n")
    done = command("leaks", "two.json", MEMSHIM_SUPPRESSIONS="wrong.supp")
    fact(done.returncode == 2 and "wrong.supp:1" in done.stderr, "a line without a chain is refused", [done.said])


def shrinking():
    """Waste says what shrinks when memory is short, and in how much the program would run; and it does."""
    slow = {"MEMSHIM_LIMBO": "none", "MEMSHIM_OOM_WAIT_MS": "60000", "MEMSIM_MEMORY": "2G"}
    followed("shrinks.json", "policy", "pending", options=["-q"], **slow)
    screen = command("summary", "shrinks.json").stdout
    told = re.search(r"Waste .*\n +(?:32|64)\d\.0 MiB of it shrink when memory is short: about (32\d)\.0 MiB would do\n", screen)
    fact(told, "what is pending shrinks", [screen])
    limit = int(told.group(1)) if told else 0
    for most, status in ((limit, 0), (limit - 1, 2)):
        done = followed("limit.json", "policy", "pending", "late", options=["-q"], MEMSHIM_LIMIT="%dM" % most, **slow)
        fact(done.returncode == status, "with %d MiB the program ends with %d" % (most, status), [done.said])
    followed("given.json", "policy", "pending", options=["-q"], MEMSHIM_PREALLOC="400M", **slow)
    fact("shrink" not in command("summary", "given.json").stdout, "what was taken at the start does not shrink", [])


def priced():
    """Calls that the pool saved are told, and those that a policy costs, beside what it gains."""
    followed("plain.json", "policy", options=["-q"], MEMSIM_MEMORY="2G")
    followed("vmm.json", "policy", options=["-q"], MEMSIM_MEMORY="2G", MEMSHIM_BACKING="vmm")
    calls = []
    for name in ("plain.json", "vmm.json"):
        with open(name, encoding="utf-8") as file:
            calls.append(json.load(file)["devices"][0])
    saved, more = (row["program_calls"] - row["vendor_calls"] for row in calls)
    fact(saved > 0 > more and calls[0]["program_calls"] == calls[1]["program_calls"] == 96 and calls[0]["vendor_calls_saved"] == saved,
         "one saves calls and the other costs some", calls)
    screen = command("summary", "plain.json").stdout
    fact(re.search(r"^Calls %d to the vendor for 96 of the program's: %d saved, about \d" % (96 - saved, saved), screen, re.M),
         "the summary has calls and time", [screen])
    screen = command("summary", "vmm.json").stdout
    fact("Calls %d to the vendor for 96 of the program's: %d more, the price of MEMSHIM_BACKING=vmm\n" % (96 - more, -more) in screen,
         "and a policy's price", [screen])
    said = command("diff", "plain.json", "vmm.json").stdout
    fact(re.search(r"^vendor calls +%d +%d +\+%d\n" % (96 - saved, 96 - more, saved - more), said, re.M) and
         "\nMEMSHIM_BACKING: malloc -> vmm\n" in said, "diff has both, and the setting that made it so", [said])
    head = json.loads(command("diff", "--json", "plain.json", "vmm.json").stdout)
    fact([head[side]["calls"]["vendor_calls"] for side in ("before", "after")] == [96 - saved, 96 - more], "in JSON too", [])


def alike():
    """Figures that differ do not look alike, and the median of nothing and something is not nothing."""
    for most in (1050, 1060):
        followed("%d.json" % most, "wanting", "few", options=["-q"], MEMSIM_MEMORY="%dM" % (2 * most))
    screens = [re.search(r" of (\S+ GiB)", lines(command("summary", "%d.json" % most).stdout, "Peak")[0]).group(1) for most in (1050, 1060)]
    fact(screens == ["2.05 GiB", "2.07 GiB"], "20 MiB more is seen beside gibibytes", screens)
    report = json.load(open("1050.json", encoding="utf-8"))
    for rank, peak in ((0, 0), (1, 348)):
        report["run"].update(rank=rank, pid=4711 + rank)
        report["devices"][0]["peak_live_bytes"] = peak << 20
        with open("rank%d.json" % rank, "w", encoding="utf-8") as file:
            json.dump(report, file)
    done = command("merge", "-f", "-o", "ranks.json", "rank0.json", "rank1.json")
    fact(re.search(r"^peak +0 B rank 0 +174\.0 MiB +348\.0 MiB rank 1", done.stdout, re.M), "the median of 0 and 348 MiB is 174 MiB", [done.said])
    fact("median 174.0 MiB" in command("summary", "rank0.json", "rank1.json").stdout, "on the job's screen too", [])
    job = json.load(open("ranks.json", encoding="utf-8"))["job"]
    fact(job["figures"]["peak_bytes"]["median"] == 174 << 20, "and in JSON", [job["figures"]])


def on_terminal(*arguments):
    """What a terminal of 80 columns is sent, without colours."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen([MEMSHIM, *arguments], env=dict(os.environ, TERM="xterm"), stdout=there, stderr=subprocess.DEVNULL) as process:
        os.close(there)
        said = b""
        try:
            while more := os.read(here, 1 << 16):
                said += more
        except OSError:  # the other side is closed
            pass
        process.wait(60)
    os.close(here)
    return re.sub(r"\033\[[0-9;]*m", "", said.decode()).replace("\r\n", "\n")


def narrow():
    """On a terminal of 80 columns no line of any screen is longer, but for a word that is; what is piped is a line for each row."""
    followed("narrow.json", "wanting", "few", options=["-q"], MEMSIM_MEMORY="2G")
    followed("full.json", "wanting", "exit", options=["-q"], MEMSIM_MEMORY="2G")
    followed("pool.json", "policy", "pending", options=["-q"], MEMSIM_MEMORY="2G", MEMSHIM_LIMBO="none")
    names = ["narrow.json", "full.json", "pool.json"]
    for verb in (["summary"], ["summary", "--all"], ["leaks"], ["findings"], ["peak"], ["owners"], ["tree"], ["frag"], ["contexts"], ["oom"],
                 ["phases"], ["timeline"], ["check", "--max-leak", "0", "--max-frag", "0", "--max-oom", "0"]):
        for name in names:
            text = on_terminal(*verb, name)
            wide = [line for line in text.splitlines() if len(line) > 80 and " " in line.strip()]
            fact(text and not wide, "memshim %s %s: 80 columns hold" % (" ".join(verb), name), wide)
    for words in (["diff", *names[:2]], ["merge", *names], ["summary", *names], ["frag", *names], ["leaks", *names], ["env"], ["help"], ["help", "run"],
                  ["help", "check"], ["doctor"], ["clean", "--dry-run"], ["top", "-n", "1"]):
        text = on_terminal(*words)
        wide = [line for line in text.splitlines() if len(line) > 80 and " " in line.strip()]
        fact(not wide, "memshim %s: 80 columns hold" % " ".join(words), wide)
    fact(json.loads(on_terminal("summary", "--json", "narrow.json")) == json.loads(command("summary", "--json", "narrow.json").stdout), "JSON stays as it is", [])
    text = on_terminal("help", "run").splitlines()
    at = next(i for i, line in enumerate(text) if line.startswith("  --sim "))
    fact(text[at + 1].startswith(" " * 27) and text[at + 1][27] != " ", "what goes on below stands below its text", text[at : at + 2])
    piped = command("summary", "narrow.json").stdout
    fact(on_terminal("summary", "narrow.json").split() == piped.split() and max(map(len, piped.splitlines())) > 80, "piped it has the same words, a line for each row", [piped])
    said = re.sub(r"/\S+/(?=tests/)", "", command("frag", "pool.json").stdout)  # the path to the tree may have any length
    fact(max(map(len, said.splitlines())) <= 120, "frag keeps to 120 when piped", [said])


def words():
    """The screens have one word for one thing: none of those that are only keys of JSON."""
    followed("words.json", "policy", "pending", options=["-q"], MEMSIM_MEMORY="2G", MEMSHIM_LIMBO="none")
    followed("full.json", "wanting", "exit", options=["-q"], MEMSIM_MEMORY="2G")
    for verb in (["summary"], ["summary", "--all"], ["leaks"], ["findings"], ["peak"], ["owners"], ["frag"], ["oom"], ["timeline"], ["check", "--max-frag", "0"]):
        for name in ("words.json", "full.json"):
            said = re.sub(r"MEMSHIM_\w+|\w+_memory|reserved_far_above_live|--\S+", "", command(*verb, name).stdout)
            found = re.findall(r"\b(?:live|limbo|stranded|strands?|requested)\b", said)
            fact(said and not found, "memshim %s %s: no word of JSON's" % (" ".join(verb), name), found + [said])
    diff = command("diff", "words.json", "full.json").stdout
    fact("allocated" in diff and "live" not in diff, "nor diff's", [diff])


EXECS = """
import ctypes, os, sys
cuda, number = ctypes.CDLL("libcudart.so.13"), int(sys.argv[1])
assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20)) == 0
if number < 4:
    os.execv(sys.executable, [sys.executable, "execs.py", str(number + 1)])
"""


def beginning():
    """The README's first command works where there is no GPU; without --sim it is named; reports after exec have their order."""
    with open(os.path.join(os.environ["top_srcdir"], "README.md"), encoding="utf-8") as file:
        tries = [line.strip() for line in file.read().split("## A report")[0].splitlines() if line.startswith("    build/prefix/bin/memshim ")]
    fact(tries, "the README has a first command", [])
    for line in tries:
        words = line.replace("build/tests/", os.environ["top_builddir"] + "/tests/").split()[1:]
        done = command(*words, MEMSHIM_REPORT="first.json")
        fact(done.returncode == 0 and "next: memshim " in done.stderr and os.path.exists("first.json"), line, [done.said])
    hint = "memshim run --sim puts the simulated GPU under the program"
    here = json.loads(command("doctor", "--json").stdout)["machine"]
    here = here["driver"] or [row for row in here["libraries"] if row["api"] in ("hip", "acl") and row.get("path")]
    for program in ([os.path.join(HERE, "policy")], [sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"]):
        done = command("run", "-f", "-o", "driverless.json", "--", *program)
        fact(here or (done.returncode and hint in done.stderr), "without a driver --sim is named", [done.said])
    fact(hint not in followed("few.json", "helper", 1).stderr, "not where it was given", [])
    if hooklib.WATCHED:
        hooklib.skip("exec", "sanitizers watch")
        return
    with open("execs.py", "w", encoding="utf-8") as file:
        file.write(EXECS)
    command("run", "--sim", "-q", "-f", "-o", "execs.json", "--", sys.executable, "execs.py", "0")
    order = []
    for name in ("execs.json", "execs.2.json", "execs.3.json", "execs.4.json", "execs.5.json"):
        with open(name, encoding="utf-8") as file:
            order.append(json.load(file)["run"]["argv"][-1])
    fact(order == ["4", "0", "1", "2", "3"], "who ends normally is first, then those that exec replaced in their order", order)


beginning()
words()
narrow()
alike()
shrinking()
priced()
wanting()
ledgers()
classes()
typed()
callers()
living()
settings()
suppressed()
incomplete()
hooklib.plan(hooklib.number)
