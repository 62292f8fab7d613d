"""MEMSHIM_TRACE and memshim run --trace: lines that agree with the report, whatever happens to the file. Prints TAP."""

import json
import os
import resource
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from needs import lacking  # noqa: E402

TMP = os.environ["TEST_TMP"]
MEMSHIM = os.environ["TEST_BIN"]
BUILD = os.environ["top_builddir"]
TRAINING = BUILD + "/tests/programs/training"
COLUMNS = "# columns: microseconds op(a|f|A|F) id bytes stream, and of a|A: site address kind"


def read(path):
    """A trace's comments, events, live bytes at the end and at their peak; every line is looked at."""
    comments, events, live = [], [], {}
    peak = now = last = ids = 0
    done = subprocess.run([MEMSHIM, "trace", "--text", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        if line.startswith("#"):
            comments.append(line.strip())
            continue
        stamp, operation, number, size, stream, *place = line.split()
        assert len(place) == (3 if operation == "a" else 0), line
        assert int(stamp) >= last, "time runs backwards"
        last = int(stamp)
        if operation == "a":
            ids += 1
            assert int(number) == ids, "ids are counted up"
            live[number] = int(size)
            now += int(size)
            peak = max(peak, now)
        else:
            assert operation == "f" and live.pop(number) == int(size), "a free of what is not there"
            now -= int(size)
        events.append((operation, int(size), int(stream), *place))
    return comments, events, now, peak


def by_hand(command, trace, **more):
    """Runs a program with the library preloaded."""
    env = {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": os.environ["TEST_LIB"],
           "MEMSHIM_REPORT": TMP + "/hand.json", "MEMSHIM_TRACE": trace}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=TMP, **more)


def memshim_run(*options):
    """memshim run on the simulated GPU."""
    return subprocess.run([MEMSHIM, "run", "--sim", "-f", "-o", TMP + "/run.json", *options, "--", TRAINING, "5"],
                          capture_output=True, text=True, check=False, cwd=TMP)


def test_agrees():
    """What the trace adds up to is what the report says."""
    done = memshim_run("--trace", "agree.trace")
    assert done.returncode == 0, done.stderr
    comments, events, live, peak = read(TMP + "/agree.trace")
    with open(TMP + "/run.json", encoding="utf-8") as file:
        report = json.load(file)
    allocs = sum(1 for e in events if e[0] == "a")
    assert allocs == sum(s["total_count"] for s in report["sites"] if s["device"] == 0)
    assert live == sum(leak["bytes"] for leak in report["leaks"]) == report["devices"][0]["live_bytes"]
    assert peak == report["devices"][0]["peak_live_bytes"]
    by_site = {}
    for _, size, _, site, address, _ in (e for e in events if e[0] == "a"):
        count, total = by_site.get(int(site), (0, 0))
        by_site[int(site)] = (count + 1, total + size)
        assert int(address, 16) > 0
    assert by_site == {s.get("row", s["id"]): (s["total_count"], s["requested_bytes"]) for s in report["sites"] if s["device"] == 0}, by_site
    assert comments[1] == COLUMNS, comments
    said = comments[2].split()
    assert said[1:5] == ["allocs", str(allocs), "frees", str(len(events) - allocs)], said
    assert said[5:] == ["distinct_sizes", str(len({e[1] for e in events})), "streams", str(len({e[2] for e in events})),
                        "peak_live_bytes", str(peak)], said


def test_streams():
    """Each of the four workers' streams has a number and is introduced before it is used."""
    comments, events, _, _ = read(TMP + "/agree.trace")
    assert {e[2] for e in events} == {0, 1, 2, 3, 4}
    assert len([c for c in comments if c.startswith("# stream ")]) == 4, comments


def test_not_overwritten():
    """A file that is there is refused, or replaced with -f, or left alone."""
    with open(TMP + "/there.trace", "w", encoding="ascii") as file:
        file.write("mine\n")
    done = subprocess.run([MEMSHIM, "run", "--sim", "--trace", "there.trace", "--", TRAINING, "1"], capture_output=True, text=True,
                          check=False, cwd=TMP)
    assert done.returncode == 2 and "there.trace exists" in done.stderr, done.stderr
    done = by_hand([TRAINING, "1"], TMP + "/there.trace")
    assert done.returncode == 0 and "there.trace.2" in done.stderr, done.stderr
    with open(TMP + "/there.trace", encoding="ascii") as file:
        assert file.read() == "mine\n"
    read(TMP + "/there.trace.2")
    done = memshim_run("--trace", "there.trace")
    assert done.returncode == 0, done.stderr
    read(TMP + "/there.trace")


def test_refused():
    """What cannot be is said before the program starts."""
    for options, words in ((["--trace", "no/where"], "no trace can be written"), (["--trace", "-"], "standard output"),
                           (["--mode", "off", "--trace", "x"], "mode off")):
        done = memshim_run(*options)
        assert done.returncode == 2 and words in done.stderr, (options, done.stderr)


def test_nowhere():
    """Without a place to write to, the program goes on and a line says so."""
    done = by_hand([TRAINING, "2"], "/proc/no/trace")
    assert done.returncode == 0 and "copies right" in done.stdout, done.stdout
    assert done.stderr.count("\n") == 1 and "no trace" in done.stderr, done.stderr


def test_size_limit():
    """At the limit of a file's size the trace ends, with a whole event; the program does not."""
    done = by_hand([BUILD + "/tests/ledger/churn", TMP + "/limit.log", "4", "100000"], TMP + "/limit.trace",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18)))
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert "limit.trace ends early" in done.stderr, done.stderr
    comments, events, _, _ = read(TMP + "/limit.trace")
    assert comments[2] == "# cut short" and 1000 < len(events) < 100000, (comments, len(events))


def test_replaced():
    """Another file under the name is not touched."""
    path = TMP + "/moved.trace"
    env = {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": os.environ["TEST_LIB"],
           "MEMSHIM_REPORT": "none", "MEMSHIM_TRACE": path}
    with subprocess.Popen([BUILD + "/tests/ledger/churn", TMP + "/moved.log", "2", "200000"], env=env, stderr=subprocess.PIPE,
                          text=True) as child:
        while not os.path.exists(path):
            time.sleep(0.001)
        os.rename(path, path + ".away")
        with open(path, "w", encoding="ascii") as file:
            file.write("mine\n")
        said = child.stderr.read()
        assert child.wait() == 0
    assert "another file has its name" in said, said
    with open(path, encoding="ascii") as file:
        assert file.read() == "mine\n"
    read(path + ".away")


def test_many_threads():
    """More lines than the ring holds, from many threads: none is lost."""
    done = by_hand([BUILD + "/tests/ledger/churn", TMP + "/many.log", "8", "160000"], TMP + "/many.trace")
    assert done.returncode == 0 and not done.stderr, done.stderr
    comments, events, _, _ = read(TMP + "/many.trace")
    assert len(events) == 160000, len(events)
    assert not comments[2].endswith("cut short")


def test_phases():
    """Phases begin and end in it, as often as the report says, and threads are told apart."""
    path = TMP + "/phases.trace"
    env = {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": os.environ["TEST_LIB"], "MEMSHIM_TRACE": path,
           "MEMSHIM_REPORT": TMP + "/phases.json", "NVTX_INJECTION64_PATH": os.environ["TEST_LIB"]}
    subprocess.run([BUILD + "/tests/phases/phases_user", "book", "4"], env=env, stdout=subprocess.DEVNULL, check=True)
    comments = read(path)[0]
    with open(TMP + "/phases.json", encoding="utf-8") as file:
        report = json.load(file)
    names = dict(line[8:].split(": ", 1) for line in comments if line.startswith("# phase "))
    begun = [line.split()[3] for line in comments if line.startswith(("# begin ", "# mark "))]
    told = {}
    for number in begun:
        source, domain, name = names[number].split(" ")
        told[source, domain, name] = told.get((source, domain, name), 0) + 1
    def escaped(text):
        return "".join(c if "!" <= c <= "~" and c != "%" else "".join("%%%02x" % byte for byte in c.encode()) for c in text) or "-"
    expected = {(row["source"], escaped(row.get("domain") or ""), escaped(row["name"])): row["count"] for row in report["phases"]}
    assert told == expected, (told, expected)
    ends, open_ = (sum(line.startswith(f"# {word} ") for line in comments) for word in ("end", "begin"))
    assert ends == open_ - sum(row.get("open", 0) for row in report["phases"]), (ends, open_)
    assert len({line for line in comments if line.startswith("# thread ")}) > 1, comments[:20]


def test_bounded():
    """With a limit the oldest events fall out, and what is left says what was live before it."""
    path = TMP + "/bounded.trace"
    env = {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": os.environ["TEST_LIB"], "MEMSHIM_TRACE": path,
           "MEMSHIM_REPORT": TMP + "/bounded.json", "MEMSHIM_TRACE_MAX": "1M"}
    subprocess.run([BUILD + "/tests/ledger/churn", TMP + "/bounded.log", "4", "600000"], env=env, check=True)
    assert os.path.getsize(path) <= 1 << 20
    done = subprocess.run([MEMSHIM, "trace", "--text", path], capture_output=True, text=True, check=True)
    live, fallen, events, listed = {}, 0, 0, 0
    newest = int(done.stdout.split("\n# allocs ")[1].split()[0])
    for line in done.stdout.splitlines():
        words = line.split()
        if words[:2] == ["#", "fallen"]:
            fallen = int(words[2])
        if words[0] == "#":
            continue
        events += 1
        if words[1] == "a":
            assert words[2] not in live
            listed += not live or int(words[2]) < max(map(int, live), default=0)
            live[words[2]] = int(words[3])
        else:
            assert live.pop(words[2]) == int(words[3]), line
    with open(TMP + "/bounded.json", encoding="utf-8") as file:
        report = json.load(file)
    assert fallen > 0 and 10000 < events < 600000, (fallen, events)
    assert sum(live.values()) == report["devices"][0]["live_bytes"]
    assert max(map(int, live)) <= newest
    said = subprocess.run([MEMSHIM, "trace", path], capture_output=True, text=True, check=True).stdout
    assert f"{fallen} came before" in said and f"{600000 - fallen} in " in said, said


def test_compressed():
    """memshim run compresses it when the program has ended, bounded or not; by hand it stays as it is."""
    with open(BUILD + "/config.h", encoding="utf-8") as file:
        is_built = "#define MS_HAVE_ZSTD" in file.read()
    texts = []
    for limit in ("none", "1M"):
        path = TMP + "/packed.trace"
        done = subprocess.run([MEMSHIM, "run", "-q", "-f", "--sim", "-o", TMP + "/packed.json", "--trace", path, "--", BUILD + "/tests/ledger/churn",
                               TMP + "/packed.log", "2", "300000"], env={**os.environ, "MEMSHIM_TRACE_MAX": limit}, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        with open(path, "rb") as file:
            assert (file.read(4) == b"\x28\xb5\x2f\xfd") == is_built
        assert os.stat(path).st_mode & 0o777 == 0o600 and not [name for name in os.listdir(TMP) if "tmp" in name]
        said = subprocess.run([MEMSHIM, "trace", path], capture_output=True, text=True, check=True).stdout
        assert (", compressed" in said) == is_built and (" fallen out" in said) == (limit == "1M"), said
        texts.append(subprocess.run([MEMSHIM, "trace", "--text", path], capture_output=True, text=True, check=True).stdout)
    assert sum(not line.startswith("#") for line in texts[0].splitlines()) == 300000
    if not is_built:
        return
    with open(TMP + "/packed.trace", "rb") as file:
        packed = file.read()
    for cut in (5, len(packed) // 2, len(packed) - 1):
        done = refused(packed[:cut], "it is compressed, and cut off", "--text")
        lines = done.stdout.splitlines()
        assert lines == texts[1].splitlines()[: len(lines)], "what comes before the cut is right"
        assert (len(lines) == 0) == (cut == 5) and (len(lines) == len(texts[1].splitlines())) == (cut == len(packed) - 1), (cut, len(lines))
    refused(packed[: len(packed) // 2] + b"x" * 100 + packed[len(packed) // 2:], "damaged")
    for more in (packed, b"x"):
        refused(packed + more, "something behind its end")


def refused(data, words, *options):
    """What is printed of such a file, of which one line says that something is wrong with it."""
    with open(TMP + "/refused.trace", "wb") as file:
        file.write(data)
    done = subprocess.run([MEMSHIM, "trace", *options, TMP + "/refused.trace"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and words in done.stderr, (words, done.stderr)
    return done


def test_put_together():
    """Two traces in one file are told from one, whichever form each of them has."""
    for limit in ("none", "1M"):
        path = TMP + f"/alone-{limit}.trace"
        env = {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": os.environ["TEST_LIB"], "MEMSHIM_TRACE": path,
               "MEMSHIM_REPORT": "none", "MEMSHIM_TRACE_MAX": limit}
        subprocess.run([TRAINING, "2"], env=env, stdout=subprocess.DEVNULL, check=True)
        with open(path, "rb") as file:
            records = file.read()
        lines = subprocess.run([MEMSHIM, "trace", "--text", path], capture_output=True, check=True).stdout
        unfinished = records[:-1] if limit == "none" else records
        for data in (records + records, unfinished + records, records + lines, lines + records, lines + lines):
            done = refused(data, "another trace begins behind the first", "--text")
            assert done.stdout.encode().splitlines()[3:] == lines.splitlines()[3:], "what the first one has is told"


def test_hostile():
    """What a file says of its program and its devices is no command for a terminal; sizes do not go around."""
    head = b"# memshim 0.9\x1b[31m, run 1: a\x1b]0;title\x07\xc2\x9b2J\x7f, process 1\n# columns:\n"
    path = TMP + "/hostile.trace"
    with open(path, "wb") as file:
        file.write(head + b"# allocs \x1b[2J\n# stream 1: \x1b[7m device 0, handle 0x7\n1 a 1 512 1 0 0x7f00 device\n")
    for options in ((), ("--text",)):
        done = subprocess.run([MEMSHIM, "trace", *options, path], capture_output=True, check=False)
        assert done.returncode == 0 and not set(done.stdout) & {0x1b, 7, 0x7f, 0x9b} and b"a?]0;title" in done.stdout, (done.stdout, done.stderr)
    most = (1 << 63) - 1
    done = refused(head + f"# x\n1 a 1 {most} 0\n2 a 2 {most} 0\n".encode(), "more is live than there can be")
    assert "-" not in done.stdout, done.stdout


def test_open_phases():
    """A million phases that are open at the same time are read like any others: looking each up in a list would outlast the test."""
    def number(value):
        return (bytes([value & 127 | 128]) + number(value >> 7)) if value > 127 else bytes([value])
    head = b"# memshim 0.9.0, run 1: x, process 1\n# binary 1\n# unfinished\n\x07\x01\x00\x00\x01p"
    numbers = [number(value) for value in range(1, 1000001)]
    with open(TMP + "/open.trace", "wb") as file:
        file.write(head + b"".join(b"\x08\x01\x01" + value for value in numbers) + b"".join(b"\x09" + value for value in numbers))
    done = subprocess.run([MEMSHIM, "trace", TMP + "/open.trace"], capture_output=True, text=True, check=True)
    assert "2000000 in " in done.stdout and "1 names, 1000000 times" in done.stdout, done.stdout


def test_damaged():
    """What is damaged is said with its place, behind what comes before."""
    path = TMP + "/damaged.trace"
    by_hand([TRAINING, "5"], path)
    with open(path, "rb") as file:
        data = file.read()
    start = data.index(b"\n", data.index(b"\n# allocs ") + 1) + 1
    place = start + (len(data) - start) // 2
    with open(path, "wb") as file:
        file.write(data[:place] + b"\xff" * 20 + data[place:])
    done = subprocess.run([MEMSHIM, "trace", path], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "byte " in done.stderr and "events" in done.stdout, (done.stderr, done.stdout)
    at = int(done.stderr.split("byte ")[1].split()[0])
    assert place - 20 <= at <= place + 20, (place, at)


def main():
    """One fact for each test."""
    if lacking():
        return
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    print(f"1..{len(tests)}")
    failed = False
    for number, (name, test) in enumerate(tests, 1):
        wrong = None
        try:
            test()
        except AssertionError as error:
            wrong = str(error) or "see the test"
        failed |= wrong is not None
        print(f"{'ok' if wrong is None else 'not ok'} {number} - {name[5:].replace('_', ' ')}: {test.__doc__}")
        if wrong is not None:
            print("#", wrong.replace("\n", "\n# "))
    sys.exit(failed)


main()
