"""memshim fit: the least device is right to a granule, sizes that nobody ran are told from two runs, and what is refused. Prints TAP."""

import json
import os
import pty
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests/tune"))
import told  # noqa: E402  pylint: disable=wrong-import-position

TMP, BIN = os.environ["TEST_TMP"], os.environ["TEST_BIN"]
SHAPES = os.path.join(os.environ["top_builddir"], "tests/programs/shapes")
GRANULE, MIB = 2 << 20, 1 << 20
ROOMY = str(64 << 30)
FACTS = []


def fact(holds, name):
    """One line of TAP, at once."""
    FACTS.append(bool(holds))
    print(f"{'ok' if holds else 'not ok'} {len(FACTS)} - {name}", flush=True)


def run(*arguments, **more):
    """The command, as it was typed."""
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, check=False, env=told.environment(**more), timeout=300)


def recorded(*words):
    """A report of shapes, with its trace beside it."""
    report = os.path.join(TMP, "-".join(words) + ".json")
    done = run("run", "-q", "-f", "--sim", "-o", report, "--trace", report + ".trace", "--", SHAPES, *words, MEMSIM_MEMORY=ROOMY)
    if done.returncode:
        sys.exit(done.stderr)
    return report


def fits(*arguments):
    """What it prints, as data."""
    done = run("fit", "--json", *arguments)
    return json.loads(done.stdout) if done.returncode == 0 else sys.exit(done.stderr)


def goes_through(words, memory, mode):
    """True where the program ends on a device of that size."""
    return run("run", "-q", "-f", "--sim", "-o", os.path.join(TMP, "edge.json"), "--", SHAPES, *words, MEMSIM_MEMORY=str(memory), MEMSHIM_MODE=mode).returncode == 0


def look_at_edges():
    """The program itself on the least device, and on one that is a granule smaller."""
    for shape in ("transformer", "convnet", "decode", "dataframe", "pipeline"):
        ways = fits(recorded(shape))["ways"]
        for way, mode in zip(ways, ("pool", "off")):
            least = way["least_device_bytes"]
            fact(goes_through([shape], least, mode) and not goes_through([shape], least - GRANULE, mode), f"{shape} by {way['way']} needs {least // MIB} MiB, and not one granule less")


def look_at_sizes():
    """From batches of 8 and 16 to others, and to the largest that fits."""
    for shape in ("transformer", "convnet"):
        sized = [word for batch in (8, 16) for word in ("--sized", f"{batch}={recorded(shape, str(batch))}")]
        for batch in (24, 32, 64):
            answer = fits("--device", "24G", *sized, "--sized", f"{batch}={recorded(shape, str(batch))}")
            fact(abs(answer["off_percent"]) < 3 and answer["held_out_size"] == batch, f"{shape}: a batch of {batch} is told from 8 and 16, {answer['off_percent']:+.2f} %")
        device = 6 << 30
        largest = int(fits("--device", str(device), *sized)["ways"][0]["devices"][0]["largest_size"])
        fact(largest > 16 and goes_through([shape, str(largest)], device, "pool") and not goes_through([shape, str(largest + 1)], device, "pool"),
             f"{shape}: a batch of {largest} is the largest on 6 GiB")
    lines = fits("--device", "24G", *[word for batch in (8, 16) for word in ("--sized", f"{batch}={recorded('transformer', str(batch))}")])["peak"]
    fact(sum(line["linear_bytes"] for line in lines) > sum(line["constant_bytes"] for line in lines) > 0 and all(line["follows"] and "stack" in line for line in lines),
         "each line has its constant and its linear share, and its stack")


def write_trace(name, events):
    """Microseconds, op, id, bytes, stream, site and address of each event."""
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="ascii") as file:
        file.write("# memshim 0.9.0, run 1: made, process 1\n")
        for number, event in enumerate(events):
            file.write(" ".join([str(number), *map(str, event)]) + "\n")
    return path


def look_at_tensors():
    """Tensors in segments, and a block beside them: PyTorch's allocator is a model, and the block is added."""
    mib = write_trace("tensors.trace", [("a", 1, 20 * MIB, 0, 1, "0x7f0000000000"), ("a", 2, 30 * MIB, 0, 2, "0x7f1000000000"), ("A", 1, 3 * MIB, 0, 1, "0x7f0000000000"),
                                        ("A", 2, 5 * MIB, 0, 2, "0x7f0000300000"), ("F", 1, 3 * MIB, 0)])
    answer = fits(mib)
    ways = {way["way"]: way for way in answer["ways"]}
    fact(answer["layer"] == "tensors" and answer["beside_bytes"] == 30 * MIB and ways["PyTorch"]["reserved_bytes"] == 20 * MIB and ways["PyTorch"]["least_device_bytes"] == 50 * MIB,
         "tensors are PyTorch's, and blocks that hold none come to them")
    answer = fits("--policy", "large_segment_size_mb:64", mib)
    fact(answer["ways"][-1]["reserved_bytes"] == 64 * MIB, "a policy of PyTorch's is a row")


def grown(first, second):
    """Two runs of one line each, with so many blocks of so many bytes."""
    return [word for size, (count, each) in ((8, first), (16, second)) for word in ("--sized", "%d=%s" % (
        size, write_trace(f"law-{size}-{count}-{each}.trace", [("a", number + 1, each, 0, 3, "0x0") for number in range(count)])))]


def look_at_laws():
    """Lines that are constant, linear, quadratic, mixed, or none of these."""
    for first, second, parts in (((4, 5 * MIB), (4, 5 * MIB), (20, 0, 0)), ((4, 5 * MIB), (4, 10 * MIB), (0, 40, 0)), ((4, 5 * MIB), (4, 20 * MIB), (0, 0, 80)),
                                 ((1, 5 * MIB), (1, 6 * MIB), (4, 2, 0))):
        line = fits("--device", "1G", *grown(first, second))["peak"][0]
        told_parts = tuple(line[part + "_bytes"] // MIB for part in ("constant", "linear", "quadratic"))
        fact(told_parts == parts, f"{first} and {second} are {told_parts} MiB")
    line = fits("--device", "1G", *grown((4, MIB), (8, MIB)))["peak"][0]
    fact(not line["follows"], "a line that allocates more often follows no law")
    done = run("fit", "--device", "1G", *grown((4, MIB), (8, MIB)))
    fact("follows no law" in done.stdout, "and the screen says so")


def look_at_threads():
    """Two threads, of which one frees just before the other asks: in another order both blocks are live."""
    trace = os.path.join(TMP, "order.trace")
    turns = []
    for number in range(20):
        turns += ["# thread 1", f"a {2 * number + 1} {40 * MIB} 0 1 0x0", f"f {2 * number + 1} {40 * MIB} 0", "# thread 2", f"a {2 * number + 2} {40 * MIB} 0 1 0x0", f"f {2 * number + 2} {40 * MIB} 0"]
    for name, lines in ((trace, turns), (trace + ".one", [line for line in turns if line[0] != "#"])):
        with open(name, "w", encoding="ascii") as file:
            file.write("# memshim 0.9.0, run 1: made, process 1\n" + "".join((line if line[0] == "#" else f"{number} {line}") + "\n" for number, line in enumerate(lines)))
    native, one = fits(trace)["ways"][1], fits(trace + ".one")["ways"][1]
    fact(native["least_device_bytes"] == 40 * MIB and native["least_device_most_bytes"] == 80 * MIB, "threads in another order may need more")
    fact(one["least_device_bytes"] == one["least_device_most_bytes"] == 40 * MIB, "one thread has one order")
    done = run("fit", "--device", "60M", trace)
    fact(re.search(r"the vendor's own calls +order of threads\n", done.stdout) and "In another order of its threads up to 80.0 MiB: the vendor's" in done.stdout, "and the screen says so")


def look_at_progress():
    """A bar while it takes long, on a terminal alone."""
    trace = write_trace("bar.trace", [("a", 1, MIB, 0, 1, "0x0")])
    ours, theirs = pty.openpty()
    done = subprocess.run([BIN, "fit", trace], stdout=subprocess.PIPE, stderr=theirs, check=True, env=told.environment(), timeout=300)
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 4096):
            said += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    fact(b"0 of 2 answers" in said and b"1 of 2 answers" in said and said.endswith(b"\r") and b"answers" not in done.stdout and not run("fit", trace).stderr, f"a bar says how far it is: {said}")


def look_at_refusals():
    """One line each, that names what is wrong."""
    trace = write_trace("plain.trace", [("a", 1, MIB, 0, 1, "0x0")])
    for words, what in (([], "give one trace"), ([trace, trace], "give one trace"), (["--device", "0", trace], "--device"), (["--device", "x", trace], "--device 'x'"),
                        (["--sized", "8=" + trace], "two sizes"), (["--sized", "8=" + trace, "--sized", "8=" + trace, "--device", "1G"], "given twice"),
                        (["--sized", "x", "--sized", "8=" + trace, "--device", "1G"], "--sized 'x'"), (["--policy", "x", trace], "--policy 'x'"),
                        (["--sized", "8=" + trace, "--sized", "9=" + trace], "--device SIZE"), ([os.path.join(TMP, "none")], "cannot read")):
        done = run("fit", *words)
        fact(done.returncode == 2 and what in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"refused: {done.stderr.strip()}")
    os.mkfifo(os.path.join(TMP, "fifo"))
    empty = write_trace("empty.trace", [])
    tensors = write_trace("one.trace", [("a", 1, 20 * MIB, 0, 1, "0x7f0000000000"), ("A", 1, MIB, 0, 1, "0x7f0000000000")])
    for words, what in (([os.path.join(TMP, "fifo")], "regular file"), ([empty], "nothing was allocated"), (["--policy", "MEMSHIM_TRACE=" + os.path.join(TMP, "evil"), trace], "--policy"),
                        (["--policy", "MEMSHIM_KEEP=0 MEMSHIM_LOG=debug", trace], "--policy"),
                        (["--policy", "MEMSHIM_BACKING=zzz", trace], "MEMSHIM_BACKING: \"zzz\" is not one of malloc,vmm"), (["--policy", "MEMSHIM_PACK=all MEMSHIM_KEEP=5X", trace], "\"5X\" is not a size"),
                        (["--policy", "MEMSHIM_KEEP=", trace], "\"\" is not a size"), (["--policy", "MEMSHIM_PREALLOC=1M MEMSHIM_PACK=none", trace], "does not go with"), (["--policy", "max_split_size_mb:1", tensors], "PyTorch takes no"),
                        (["--policy", "large_segment_size_mb:10", tensors], "PyTorch takes no"), (["--policy", "backend:cudaMallocAsync", tensors], "PyTorch takes no")):
        done = run("fit", *words)
        fact(done.returncode == 2 and what in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"refused: {done.stderr.strip()}")
    both = os.path.join(TMP, "both")
    done = run("run", "-q", "--sim", "-o", both, "--trace", both, "--", SHAPES, "decode")
    fact(done.returncode == 2 and "would both be" in done.stderr and not os.path.exists(both), "a report and its trace are two files")
    same = [word for size in (8, 16) for word in ("--sized", f"{size}={trace}")]
    fact(re.search(r"size that fits +1.00 GiB\n  memshim's pool +any\n", run("fit", "--device", "1G", *same).stdout), "memory that does not grow fits at any size")
    screen = run("fit", "--device", "1G,2G,4G,900K,64G", "--policy", "MEMSHIM_BACKING=vmm MEMSHIM_PACK=all MEMSHIM_KEEP=0", *same).stdout
    fact(max(map(len, screen[screen.index("\n\n"):screen.index("First")].splitlines())) <= 80 and screen.count("On a device of") == 3 and len(re.findall(r"size that fits .*\n.*\n.*\n.*KEEP=0\n +any", screen)) == 3,
         f"the screen has 80 columns for any number of devices:\n{screen}".replace("\n", "\n# "))
    report = os.path.join(TMP, "traceless.json")
    run("run", "-q", "--sim", "-o", report, "--", SHAPES, "decode")
    done = run("fit", report)
    fact(done.returncode == 2 and "wrote no trace" in done.stderr, "a report without a trace says how to have one")


def main():
    """Each part in turn."""
    if os.environ["TEST_SANITIZE"]:
        print("1..0 # SKIP a sanitizer's library cannot be preloaded into a plain program")
        return
    look_at_edges()
    look_at_sizes()
    look_at_tensors()
    look_at_laws()
    look_at_threads()
    look_at_progress()
    look_at_refusals()
    print(f"1..{len(FACTS)}")
    sys.exit(not all(FACTS))


main()
