#!/usr/bin/env python3
"""What `memshim export` writes, opened by the tools that it is for: what they say is what the report says. Run by scripts/test-exports, which has the packages; with
`top_srcdir`, `top_builddir`, `TEST_BIN` and `TEST_TMP` set. Prints TAP; what is not on this machine is skipped by name."""
import glob
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

TOP, BUILD, MEMSHIM, TMP = (os.environ[name] for name in ("top_srcdir", "top_builddir", "TEST_BIN", "TEST_TMP"))
CACHE = os.environ["TEST_CACHE"]
VALUES = {"peak": "at_peak_bytes", "live": "live_bytes", "total": "total_bytes", "count": "total_count", "rounding": "rounding_bytes"}
PPROF = {"peak": "peak_space", "live": "inuse_space", "total": "alloc_space", "count": "alloc_objects", "rounding": "rounding_space"}
facts = [0, 0]


class Absent(Exception):
    """What is not on this machine."""


def need(name, found):
    if not found:
        raise Absent(name + " is not here")
    return found


def fact(name):
    """A test by its name; what it asserts holds, or is shown."""
    def make(function):
        facts[0] += 1
        try:
            function()
            print("ok %d - %s" % (facts[0], name))
        except Absent as reason:
            print("ok %d - %s # SKIP %s" % (facts[0], name, reason))
        except Exception as reason:  # a tool's complaint is the finding
            facts[1] += 1
            print("not ok %d - %s\n#   %s: %s" % (facts[0], name, type(reason).__name__, str(reason)[:2000].replace("\n", "\n#   ")))
        sys.stdout.flush()
        return function
    return make


def export(what, *words, report=None):
    path = os.path.join(TMP, "out." + what)
    subprocess.run([MEMSHIM, "export", "--format", what, "-f", "-o", path, *words, report or REPORT], check=True)
    return path


def ran(*words, data=None, **more):
    done = subprocess.run(words, input=data, capture_output=True, text=True, timeout=300, check=False, **more)
    assert done.returncode == 0, "%s: %s%s" % (words[0], done.stdout[-1000:], done.stderr[-1000:])
    return done.stdout


def sums():
    told = {value: sum(site[key] for site in BOOK["sites"]) for value, key in VALUES.items()}
    told["leaked"] = sum(leak["bytes"] for leak in BOOK["leaks"] if leak["class"] not in ("suppressed", "cache"))
    return told


def play():
    """A program with phases, threads and a trace; then its report with names."""
    report, trace, named = (os.path.join(TMP, name) for name in ("r.json", "r.trace", "named.json"))
    environment = dict(os.environ, LD_LIBRARY_PATH=BUILD, LD_PRELOAD=os.path.join(BUILD, "libmemshim.so"), MEMSHIM_REPORT=report, MEMSHIM_TRACE=trace,
                       NVTX_INJECTION64_PATH=os.path.join(BUILD, "libmemshim.so"), MEMSHIM_LOG="none")
    subprocess.run([os.path.join(BUILD, "tests", "phases", "phases_user"), "book", "4"], env=environment, stdout=subprocess.DEVNULL, check=True)
    subprocess.run([MEMSHIM, "symbolize", "-o", named, report], check=True, stdout=subprocess.DEVNULL)
    with open(named, encoding="utf-8") as file:
        return named, trace, json.load(file)


def trace_lines():
    return ran(MEMSHIM, "trace", "--text", TRACE).splitlines()


REPORT, TRACE, BOOK = play()
print("1..10")


@fact("folded: flamegraph.pl draws as many bytes as the report has")
def folded():
    script = need("flamegraph.pl", glob.glob(os.path.join(sys.prefix, "sources", "**", "flamegraph.pl"), recursive=True))[0]
    for value, expected in sums().items():
        with open(export("folded", "--value", value), encoding="utf-8") as file:
            drawn = ran("perl", script, "--countname", "bytes", "--minwidth", "0", data=file.read()) if expected else "<title>all (0 bytes"
        width = re.search(r"<title>all \(([\d,]+) bytes", html.unescape(drawn)).group(1)
        assert int(width.replace(",", "")) == expected, (value, width, expected)


@fact("pprof: go tool pprof has the same sum for each sample type")
def pprof():
    go = need("go", shutil.which("go"))
    raw = ran(go, "tool", "pprof", "-raw", export("pprof"))
    types = [word.split("/")[0] for word in raw.split("Samples:\n")[1].split("\n")[0].split()]
    rows = [list(map(int, line.split(":")[0].split())) for line in raw.split("Samples:\n")[1].split("Locations\n")[0].split("\n") if re.match(r"^ +\d[\d ]*: ", line)]
    told = {kind: sum(row[place] for row in rows) for place, kind in enumerate(types)}
    for value, kind in dict(PPROF, leaked="leaked_space").items():
        assert told[kind] == sums()[value], (value, told[kind], sums()[value])
        if sums()[value]:
            top = ran(go, "tool", "pprof", "-top", "-unit", "B", "-sample_index", kind, export("pprof"))
            assert re.search(r"of %d(B|) total|accounting for %d(B|)," % (sums()[value], sums()[value]), top), (kind, top[:500])


@fact("chrome: Perfetto's trace processor has the counters, the phases and every block of the trace")
def chrome():
    need("chromium", shutil.which("chromium"))
    need("chromedriver", shutil.which("chromedriver"))
    told = browser.perfetto(export("chrome", "--trace", TRACE))
    assert not told["errors"], told["errors"]
    counters = {name: (count, most) for name, count, most, _ in told["counters"]}
    for series in BOOK["timeline"]["devices"]:
        for key in ("live", "reserved", "limbo"):
            expected = (len(series[key]) + 1, max(series[key]))
            assert counters["cuda %d memory %s" % (series["device"], key)] == expected, (key, expected, counters)
    blocks = sum(line[0] != "#" and line.split()[1] == "a" for line in trace_lines())
    assert told["slices"] == blocks + len(BOOK["phases"]), (told["slices"], blocks, len(BOOK["phases"]))


@fact("dhat: valgrind's dh_view.html shows the sums in all, at the peak and at the end")
def dhat():
    need("chromium", shutil.which("chromium"))
    viewer = need("dh_view.html", glob.glob("/usr/lib*/valgrind/dh_view.html") + glob.glob("/usr/libexec/valgrind/dh_view.html"))[0]
    shown = browser.dhat(viewer, export("dhat"))
    for what, value in (("Total", "total"), ("At t-gmax", "peak"), ("At t-end", "live")):
        found = re.search(r"%s: +([\d,]+) bytes" % what, shown)
        assert found and int(found.group(1).replace(",", "")) == sums()[value], (what, sums()[value], shown[:1500])


@fact("prometheus: promtool finds nothing to say")
def promtool():
    tool = need("promtool", shutil.which("promtool"))
    for value in sums():
        with open(export("prometheus", "--value", value), encoding="utf-8") as file:
            done = subprocess.run([tool, "check", "metrics"], stdin=file, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


@fact("prometheus and openmetrics: prometheus-client reads what the report says")
def client():
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics
    for what, reader in (("prometheus", parser), ("openmetrics", openmetrics)):
        with open(export(what), encoding="utf-8") as file:
            families = list(reader.text_string_to_metric_families(file.read()))
        told = {}
        for family in families:
            for sample in family.samples:
                told[sample.name] = told.get(sample.name, 0) + sample.value
        assert told["memshim_site_peak_bytes"] == sums()["peak"] and told["memshim_leaked_bytes"] == sums()["leaked"], told
        assert told["memshim_device_peak_live_bytes"] == sum(device["peak_live_bytes"] for device in BOOK["devices"]), told
        assert told["memshim_device_allocated_bytes_total"] == sum(device["allocated_bytes"] for device in BOOK["devices"]), told


@fact("openmetrics: Prometheus scrapes it")
def scrape():
    server = need("prometheus", shutil.which("prometheus"))
    page = export("openmetrics")

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *words):
            pass

        def do_GET(self):
            with open(page, "rb") as file:
                body = file.read()
            self.send_response(200)
            self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    here = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=here.serve_forever, daemon=True).start()
    with open(os.path.join(TMP, "prometheus.yml"), "w", encoding="utf-8") as file:
        file.write("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: memshim, static_configs: [{targets: ['127.0.0.1:%d']}]}]\n" % here.server_address[1])
    spare = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    port = spare.server_address[1]
    spare.server_close()
    process = subprocess.Popen([server, "--config.file", os.path.join(TMP, "prometheus.yml"), "--storage.tsdb.path", os.path.join(TMP, "prometheus"),
                                "--web.listen-address", "127.0.0.1:%d" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def asked():
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?query=sum(memshim_site_peak_bytes)" % port, timeout=10) as answer:
                    return json.load(answer)["data"]["result"]
            except OSError:
                return None
        browser.until(asked, "answer of Prometheus")
        assert int(asked()[0]["value"][1]) == sums()["peak"], asked()
    finally:
        process.terminate()
        process.wait(60)
        here.shutdown()


@fact("csv and jsonl: pandas adds up the same")
def pandas():
    import pandas as library
    for frame in (library.read_csv(export("csv")), library.read_json(export("jsonl"), lines=True)):
        for value, expected in sums().items():
            key = "leaked_bytes" if value == "leaked" else VALUES[value]
            assert int(frame[key].sum()) == expected, (key, expected)
        assert len(frame) == len(BOOK["sites"])


@fact("csv and jsonl: DuckDB adds up the same, and writes the lines as Parquet")
def duckdb():
    import duckdb as library
    for what, reader in (("csv", "read_csv"), ("jsonl", "read_json")):
        path = export(what)
        for value, expected in sums().items():
            key = "leaked_bytes" if value == "leaked" else VALUES[value]
            assert library.sql("select sum(%s) from %s('%s')" % (key, reader, path)).fetchall()[0][0] == expected, (what, key)
    parquet = os.path.join(TMP, "sites.parquet")
    library.sql("copy (select * from read_json('%s')) to '%s' (format parquet)" % (export("jsonl"), parquet))
    assert library.sql("select sum(at_peak_bytes), count(*) from '%s'" % parquet).fetchall()[0] == (sums()["peak"], len(BOOK["sites"]))


@fact("snapshot: PyTorch's _memory_viz.py has every segment, and follows every event")
def snapshot():
    viz = need("PyTorch's _memory_viz.py (scripts/test-clients installs it)",
               glob.glob(os.path.join(CACHE, "*", "*", "lib", "python3*", "site-packages", "torch", "cuda", "_memory_viz.py")) +
               glob.glob(os.path.join(CACHE, "*", "torch", "cuda", "_memory_viz.py")))[0]
    path = export("snapshot", "--trace", TRACE)
    stats, trace = ran(sys.executable, viz, "stats", path), ran(sys.executable, viz, "trace", path)
    assert "segments: %d\n" % len(BOOK["segments"]) in stats, stats
    operations = [line.split()[1] for line in trace_lines() if line[0] != "#"]
    assert len(re.findall(r"^del ", trace, re.M)) == operations.count("f"), trace[-2000:]
    assert len(re.findall(r"^# free completed", trace, re.M)) == operations.count("f")
    assert len(re.findall(r"^\w+ = (?!cudaMalloc)", trace, re.M)) == operations.count("a"), operations.count("a")


sys.exit(1 if facts[1] else 0)
