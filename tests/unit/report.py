"""The report of a known history: valid by its schema, and every figure as it must be. Speaks TAP."""

import base64
import json
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile

SAMPLE = os.path.abspath(os.path.join(os.environ.get("top_builddir", "."), "tests/unit/report_sample"))
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/report/report.schema.json")
results = 0
failures = 0


def ok(condition, name):
    """One fact."""
    global results, failures
    results += 1
    failures += not condition
    print(f"{'ok' if condition else 'not ok'} {results} - {name}")


def same(got, want, name):
    """Two values are equal."""
    ok(got == want, name)
    if got != want:
        print(f"# got {got!r}, want {want!r}")


def run(folder, history, report="r.json", **more):
    """Runs the sample in `folder`; returns its exit status, what it said, and the report's path."""
    environment = {k: v for k, v in os.environ.items() if not re.match("MEMSHIM|RANK|SLURM|WORLD|LOCAL_RANK|OMPI|PM", k)}
    environment.update({"MEMSHIM_REPORT": report}, **more)
    done = subprocess.run([SAMPLE, history, "caf\udce9"], cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode, done.stderr.decode("utf-8", "replace"), os.path.join(folder, report)


def load(path):
    """A report, strictly UTF-8."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check_schema(report, name):
    """Holds a report against the schema, where the package is present."""
    try:
        import jsonschema
    except ImportError:
        global results
        results += 1
        print(f"ok {results} - {name} # SKIP python3-jsonschema is missing")
        return
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = [e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(report)]
    same(errors, [], name)


def check_references(report):
    """Every number that stands for a row has its row."""
    stacks, frames, modules, sites = (report[k] for k in ("stacks", "frames", "modules", "sites"))
    good = stacks[0] == [0, -1]
    for number, (parent, frame) in enumerate(stacks[1:], 1):
        good = good and parent < number and frame < len(frames)
    ok(good, "stacks name frames, and their parents come first")
    ok(all(f.get("module", 0) < len(modules) for f in frames), "frames name modules")
    ok([m["id"] for m in modules] == list(range(len(modules))), "a module's id is its place")
    ok([s["id"] for s in sites] == list(range(len(sites))), "a site's id is its place")
    ok(all(s["stack"] < len(stacks) for s in sites), "sites name stacks")
    ok(all(leak["site"] < len(sites) for leak in report["leaks"]), "leaks name sites")
    blocks = [b for s in report["segments"] for b in s["blocks"]]
    ok(all(b["site"] < len(sites) for b in blocks), "blocks name sites")
    used = {0}
    for number in [s["stack"] for s in sites] + [o["stack"] for o in report["oom"]]:
        while number:
            used.add(number)
            number = stacks[number][0]
    same(len(used), len(stacks), "no stack is there that nothing names")


def check_figures(report):
    """The history of report_sample.c, history_full."""
    device = {d["index"]: d for d in report["devices"]}
    same(device[0]["live_bytes"], 1301, "live bytes of device 0")
    same(device[0]["live_count"], 2, "live blocks of device 0")
    same(device[0]["followed_bytes"], 1301, "all of them followed")
    same(device[0]["peak_live_bytes"], 6301, "peak of device 0")
    same(device[0]["name"], "Sim\ufffd GPU", "a name that is not UTF-8 is made so")
    same(device[0]["uuid"], "GPU-12340000-0000-0000-0000-000000000000", "the uuid")
    same(device[1]["live_bytes"], 2002, "live bytes of device 1")
    memory = {m["kind"]: m for m in report["memory"]}
    same(memory["pinned"]["live_bytes"], 70000, "pinned memory")
    same(memory["registered"]["peak_live_bytes"], 9000, "registered memory")
    leaks = {(l["kind"], l["device"]): l["bytes"] for l in report["leaks"]}
    same(leaks, {("device", 0): 1001, ("device", 1): 2002, ("async", 0): 300, ("pinned", -1): 70000},
         "leaks by kind and device; what was registered cannot leak")
    sites = report["sites"]
    same(sum(s["at_peak_bytes"] for s in sites if s["device"] == 0), 6301, "sites add up to the peak")
    same(sum(s["live_bytes"] for s in sites), 1301 + 2002 + 70000 + 9000, "sites add up to what is live")
    same(sum(s["rounding_bytes"] for s in sites), 1 + 2, "what was rounded up")
    api = {a["name"]: a for a in report["apis"]}
    same((api["cudaMalloc"]["calls"], api["cudaMalloc"]["failures"], api["cudaMalloc"]["bytes"]),
         (5, 1, 1001 + 2002 + 5000 + 300), "calls, failures and bytes of a function")
    ok("cuMemAddressReserve" not in api, "what was not called is not listed")
    same(len(report["segments"]), 5, "each live block has its segment")
    same(report["segments"][-1]["blocks"][0]["stream"], "0x20", "with its stream")
    same(report["coverage"]["routes"], {"exported": 0, "dlsym": 2, "get_proc_address": 0}, "routes")
    same((report["coverage"]["divergent"], report["coverage"]["unseen_frees"]), (1, 1), "divergent and unseen")
    same(report["coverage"]["blind_spots"], ["a library opened with RTLD_DEEPBIND"], "blind spots")
    same([f["rule"] for f in report["findings"]], ["unseen_frees"], "findings")
    ok("test: a line for diagnostics" in report["diagnostics"], "diagnostics")
    oom = report["oom"][0]
    same((oom["requested"], oom["cause"], oom["live"]), (1 << 21, "capacity", 1301), "an out-of-memory error")
    line = report["timeline"]
    same(max(line["devices"][0]["live"]), 6301, "the peak is in the timeline")
    same(len(line["devices"][0]["live"]), len(line["t"]), "every stretch has its time")


def check_vendors(report):
    """Devices of the same index, told apart by their interface."""
    where = [("cuda", 0), ("hip", 0), ("hip", 63), ("acl", 0)]
    same([(d["api"], d["index"], d["live_bytes"]) for d in report["devices"]],
         [(*w, n) for w, n in zip(where, (1000, 200, 4, 30))], "each interface has its device 0")

    def place(row):
        return (row.get("device_api", "cuda"), row["device"]) if row["device"] >= 0 else None
    for rows, name in ((report["sites"], "sites"), (report["leaks"], "leaks"), (report["segments"], "segments")):
        same(sorted(filter(None, map(place, rows))), sorted(where), f"{name} say which")
    same(sorted(map(place, report["timeline"]["devices"])), sorted(where), "and so does the timeline")
    same(place(report["oom"][0]), ("hip", 0), "and a lack of memory")
    same([(m["kind"], m["live_bytes"]) for m in report["memory"]], [("device", 5)],
         "a device beyond those that have a number is none")
    same(sum(d["live_bytes"] for d in report["devices"]) + 5, sum(s["live_bytes"] for s in report["sites"]), "all add up")


def check_run(report, folder):
    """Which process it was."""
    process = report["run"]
    same(process["argv"], [SAMPLE, "full", "caf\ufffd"], "arguments, made UTF-8")
    same(process["exe"], os.path.realpath(SAMPLE), "the program")
    same(process["cwd"], os.path.realpath(folder), "the directory where it began, not where it ended")
    same((process["end_reason"], process["exit_code"], process["complete"]), ("exit", 0, True), "how it ended")
    same((process["rank"], process["local_rank"], process["world_size"], process["job_id"]), (5, 1, 8, "42"),
         "its place in a job")
    config = {c["name"]: c for c in report["config"]}
    same(config["MEMSHIM_LOG"], {"name": "MEMSHIM_LOG", "value": "error", "source": "environment"}, "its options")
    owners = {os.path.basename(m["path"]): m["owner"] for m in report["modules"]}
    same(owners["report_sample"], "program", "the program's module is the program's")
    same(owners["libc.so.6"], "libc", "and libc's is libc's")


def check_stacks(report):
    """The names of functions, through the symbols of the sample itself."""
    symbols = subprocess.run(["nm", "-n", "--defined-only", SAMPLE], capture_output=True, text=True, check=False).stdout
    table = [(int(a, 16), n) for a, t, n in (line.split() for line in symbols.splitlines() if len(line.split()) == 3)
             if t in "tT"]
    leak = next(l for l in report["leaks"] if l["device"] == 1)
    number = report["sites"][leak["site"]]["stack"]
    names = []
    while number:
        number, frame = report["stacks"][number]
        row = report["frames"][frame]
        if row.get("module") == 0:
            pc = int(row["rel_pc"], 16) - 1
            names.append(([n for a, n in table if a <= pc] or ["?"])[-1])
    same(names[0].split(".")[0], "leak", "the innermost frame is the one that allocated")
    ok("main" in names, "and main is among its callers")


def keys_of(schema):
    """Every name of a property in a schema."""
    found = set()
    if isinstance(schema, dict):
        found.update(schema.get("properties", {}))
        for value in schema.values():
            found |= keys_of(value)
    elif isinstance(schema, list):
        for value in schema:
            found |= keys_of(value)
    return found


def check_documents(report):
    """Every key is in the schema, and explained."""
    with open(SCHEMA, encoding="utf-8") as file:
        known = keys_of(json.load(file))

    def words(*pages):
        found = set()
        for page in pages:
            with open(os.path.join(os.path.dirname(SCHEMA), "../../docs", page), encoding="utf-8") as file:
                found |= set(re.findall(r"[a-z_]+", file.read()))
        return found
    same(sorted(known - words("user/report.md", "user/several.md")), [],
         "docs/user/report.md has every key of the schema, and docs/user/several.md those of job reports")
    same(sorted(known - words("internals/contract.md")), [], "and so has docs/internals/contract.md")

    def unknown(value):
        if isinstance(value, list):
            return set().union(*map(unknown, value)) if value else set()
        if not isinstance(value, dict):
            return set()
        names = {k for k in value if not k.isdigit()}
        return (names - known).union(*map(unknown, value.values()))
    same(sorted(unknown(report)), [], "the report has no key that the schema lacks")


def check_file(folder):
    """Where the file goes, and what is not touched."""
    status, said, _ = run(folder, "full", "%h.%p.%r.%e.%%.%q.json", RANK="3")
    made = [n for n in os.listdir(folder) if n.endswith("%q.json")]
    ok(status == 0 and len(made) == 1 and re.fullmatch(
        re.escape(socket.gethostname()) + r"\.\d+\.3\.report_sample\.%\.%q\.json", made[0]), "placeholders")
    status, said, path = run(folder, "full", "none")
    ok(status == 0 and not os.path.exists(path), "none is no report")
    link, target = os.path.join(folder, "link.json"), os.path.join(folder, "target")
    with open(target, "w", encoding="utf-8") as file:
        file.write("precious")
    os.symlink(target, link)
    status, said, _ = run(folder, "full", "link.json")
    ok(status == 3 and "link.json" in said and os.path.islink(link), "a symbolic link is left alone")
    with open(target, encoding="utf-8") as file:
        same(file.read(), "precious", "and so is what it leads to")
    status, said, path = run(folder, "full", "no/such/folder.json")
    ok(status == 3 and "No such file" in said and "no/such/folder.json" in said, "a path that cannot be is named")
    status, said, path = run(folder, "full", "/dev/null")
    ok(status == 0 and stat.S_ISCHR(os.stat("/dev/null").st_mode), "a device is written into")
    status, said, path = run(folder, "limit", "limit.json")
    ok(status == 3 and "File too large" in said and not os.path.exists(path), "a file that cannot be whole is not there")
    same([n for n in os.listdir(folder) if ".tmp" in n], [], "nothing temporary is left")
    status, said, path = run(folder, "full", "mode.json")
    same(oct(os.stat(path).st_mode & 0o777), "0o600", "the file is its owner's alone")


def check_python(folder):
    """Stacks with frames of Python: where they are, what they are made of, and that they have the same hash."""
    report = load(run(folder, "python")[2])
    check_schema(report, "a report of Python frames is valid")
    check_references(report)
    kinds = {"python": lambda f: (f["code"], f["offset"]), "mark": lambda f: (f["mark"], f.get("name")), "native": lambda f: None}
    stacks = []
    for site in report["sites"]:
        stack, number = [], site["stack"]
        while number:
            number, frame = report["stacks"][number]
            stack.append(kinds[report["frames"][frame]["kind"]](report["frames"][frame]))
        stacks.append(stack)
    same(stacks, [[None, (1, 0), None, (0, 4)], [None, (1, 18)], [None, ("apart", None), (1, 16)],
                  [None, ("thread", "pt_autograd_0"), ("inferred", None), (1, 0)], [None, ("unsure", None)]],
         "frames of Python and marks are where they were")
    same([(c["id"], c["file"], c["function"], c["first_line"], c["version"], base64.b64decode(c["lines"])) for c in report["codes"]],
         [(0, "/app/train.py", "main", 40, "3.12", b""),
          (1, "/app/caf\ufffd.py", "Model.step", 40, "3.12", bytes((0xef, 4, 0xf8, 0xe0, 1, 2)))],
         "with the code objects that they are of, and no others")
    python = report["run"]["python"]
    same([python[k] for k in ("state", "merged", "apart", "inferred", "unsure")], ["absent", 2, 1, 1, 1], "and are counted")
    again = load(run(folder, "python", SEED="1")[2])
    same([s["hash"] for s in report["sites"]], [s["hash"] for s in again["sites"]],
         "hashes are of files and functions, neither of lines nor of what was inferred")
    same(len({s["hash"] for s in report["sites"]}), 5, "and tell the sites apart")
    same(load(run(folder, "full", MEMSHIM_PYTHON="off")[2])["run"]["python"]["state"], "off", "a variable says off")


def check_hash(folder):
    """The same site has the same hash in every run."""
    hashes = [sorted(s["hash"] for s in load(run(folder, "full", f"hash{i}.json")[2])["sites"]) for i in range(2)]
    same(hashes[0], hashes[1], "hashes of sites are the same in another run")


def main():
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        status, said, path = run(folder, "full", RANK="5", LOCAL_RANK="1", WORLD_SIZE="8", SLURM_JOB_ID="42",
                                 MEMSHIM_LOG="error")
        same((status, said), (0, ""), "a report is written, and nothing said")
        report = load(path)
        check_schema(report, "it is valid by its schema")
        check_references(report)
        check_figures(report)
        check_run(report, folder)
        check_stacks(report)
        check_documents(report)

        report = load(run(folder, "died")[2])
        check_schema(report, "a report of a context that died is valid")
        same(sum(l["bytes"] for l in report["leaks"]), 3013, "what a context took along was never freed")
        same([(f["rule"], f["bytes"], f["count"]) for f in report["findings"]], [("context_died_with_blocks", 3013, 3)],
             "and is a finding")
        ok("3 blocks (2.9 KiB) that were never freed" in report["findings"][0]["message"], "whose text has sizes for people")
        same(report["segments"], [], "but nothing of it is live")

        report = load(run(folder, "vendors")[2])
        check_schema(report, "a report of three vendors' devices is valid")
        check_vendors(report)

        report = load(run(folder, "many")[2])
        check_schema(report, "a report of many blocks is valid")
        same(len(report["segments"]), 10000, "the blocks shown are bounded")
        same(report["devices"][0]["live_count"], 25000, "the counts are not")
        ok(any("10000 largest of 25000" in d for d in report["diagnostics"]), "and the report says so")
        same(len(report["sites"]), 1, "one place in the code is one site")

        report = load(run(folder, "contexts")[2])
        check_schema(report, "a report of many contexts is valid")
        same([len(report["contexts"]), report["overhead"].get("contexts_left_out")], [4096, 4], "contexts without a row are counted")

        report = load(run(folder, "empty")[2])
        check_schema(report, "a report of nothing is valid")
        check_file(folder)
        check_hash(folder)
        check_python(folder)
    print(f"1..{results}")
    sys.exit(failures > 0)


main()
