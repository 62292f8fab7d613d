#!/usr/bin/env python3
"""Programs with one fault each, and the same without it (planted_*.c): each fault is found, by its rule and with its line or variable, and
nothing is found of the twin. The table in planted.md is made here: FINDINGS_DOCS=1 writes it anew. And that page has a section for each
rule, which says its numbers."""
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, WATCHED, fact, plan, preload, shim_environment  # noqa: E402

TOP = os.environ["top_srcdir"]
PROGRAM = os.path.join(BUILD, "tests", "findings", "planted")
PAGE = os.path.join(TOP, "docs", "user", "findings.md")
TABLE = os.path.join(TOP, "tests", "findings", "planted.md")
BEGIN, END = "<!-- planted: made by tests/findings/findings.py -->", "<!-- planted: end -->"

# What it comes to goes by how long the program runs, or by how the pool grows.
VARY = {"growth", "stranded_memory", "limbo_memory", "stream_hoard", "reserved_far_above_live"}

USES = {"MEMSHIM_USES": "on", "LD_PRELOAD": os.path.join(BUILD, "libmemshim-uses.so") + ":" + preload()}
TWO = {"MEMSIM_DEVICES": "2", "MEMSIM_CONTEXT": "300M"}

# The program: its rule; what the finding has to name (a function, or a variable in the advice); the variables of both runs, those of the
# faulty one alone.
SCENES = {
    "out_of_memory": ("out_of_memory", "out_of_memory at ", {}, {}),
    "leak_device": ("leak", None, {}, {}),
    "leak_stream_ordered": ("leak", None, {}, {}),
    "leak_managed": ("leak", None, {}, {}),
    "leak_pinned": ("leak", None, {}, {}),
    "leak_array": ("leak", None, {}, {}),
    "leak_nccl_buffer": ("leak", None, {}, {}),
    "leak_after_error": ("leak", None, {}, {}),
    "growing_cache": ("growth", None, {}, {}),
    "growing_and_freed": ("growth", None, {}, {}),
    "growing_phase": ("growth", None, {}, {}),
    "stranded_between_long_lived": ("stranded_memory", "MEMSHIM_BACKING", {}, {}),
    "stranded_by_small": ("stranded_memory", "MEMSHIM_BACKING", {}, {}),
    "far_ahead": ("limbo_memory", "MEMSHIM_LIMBO", {"MEMSHIM_LIMBO": "none"}, {}),
    "hoarding_stream": ("stream_hoard", "pass_on", {}, {}),
    "hoarding_streams": ("stream_hoard", "pass_on", {}, {}),
    "preallocated": ("reserved_far_above_live", "MEMSHIM_PREALLOC", {}, {"MEMSHIM_PREALLOC": "256M"}),
    "many_small_buffers": ("granularity_rounding", None, {}, {}),
    "narrow_rows": ("granularity_rounding", None, {}, {}),
    "temporary_managed": ("temporary_vendor_calls", None, {}, {}),
    "temporary_pinned": ("temporary_vendor_calls", None, {}, {}),
    "temporary_array": ("temporary_vendor_calls", None, {}, {}),
    "temporary_handle": ("temporary_vendor_calls", None, {}, {}),
    "temporary_registered": ("temporary_vendor_calls", None, {}, {}),
    "temporary_tracked": ("temporary_vendor_calls", None, {"MEMSHIM_MODE": "track"}, {}),
    "late_cublas": ("late_library_memory", "fill_device", {}, {}),
    "pinned_elsewhere": ("unused_device_context", None, TWO, {}),
    "asked_everywhere": ("unused_device_context", None, TWO, {}),
    "context_elsewhere": ("unused_device_context", None, TWO, {}),
    "died_with_reset": ("context_died_with_blocks", None, {}, {}),
    "died_with_context": ("context_died_with_blocks", None, {}, {}),
    "imported_open": ("imports_open", None, {}, {}),
    "registered_and_left": ("registrations_left", None, {}, {}),
    "forked_with_gpu": ("forked_with_gpu", "call_in_child", {}, {}),
    "nccl_registers_host": ("wrong_registration", "register_there", {}, {}),
    "nccl_registers_too_much": ("wrong_registration", "register_there", {}, {}),
    "nccl_registers_too_much_of_a_buffer": ("wrong_registration", "register_there", {}, {}),
    "nccl_registers_too_much_of_mappings": ("wrong_registration", "register_there", {}, {}),
    "nccl_leaves_registrations": ("buffers_registered", "register_there", {}, {}),
    "freed_twice": ("double_free", None, {}, {}),
    "freed_twice_in_stream": ("double_free", None, {}, {}),
    "freed_inside": ("interior_free", None, {}, {}),
    "freed_inside_in_stream": ("interior_free", None, {}, {}),
    "never_used": ("never_used", None, USES, {}),
    "never_used_beside_copies": ("never_used", None, USES, {}),
    "used_after_free": ("use_after_free", None, USES, {}),
    "used_after_free_by_copy": ("use_after_free", None, USES, {}),
    "used_after_free_by_kernel": ("use_after_free", None, USES, {}),
    "used_after_free_by_graph": ("use_after_free", None, USES, {}),
    "used_after_free_by_graph_kernel": ("use_after_free", None, USES, {}),
    "used_after_free_by_older_graph": ("use_after_free", None, USES, {}),
    "freed_late": ("freed_late", None, USES, {}),
    "freed_late_by_kernel": ("freed_late", None, USES, {}),
    "freed_late_in_stream": ("freed_late", None, USES, {}),
    "freed_late_by_rows": ("freed_late", None, USES, {}),
    "freed_late_unread": ("freed_late", None, USES, {}),
    "allocated_early": ("allocated_early", None, USES, {}),
    "allocated_early_by_kernel": ("allocated_early", None, USES, {}),
    "pinned_beyond_use": ("pinned_beyond_use", None, USES, {}),
}

# Used in ways that are hard to see: nothing may be found, in the pool and tracked.
USED = ("used_by_table", "used_by_capture", "used_by_node", "used_by_buffer", "used_by_structure", "used_by_other_thread", "used_by_name",
        "used_by_process")


def path_of(name, clean):
    return os.path.join(TMP, name + (".clean" if clean else "") + ".json")


def play(job):
    name, clean = job
    _, _, both, faulty = SCENES[name]
    # Each has a device of its own, whose name is the others' too: they are no neighbours.
    done = subprocess.run([PROGRAM, name] + (["clean"] if clean else []), text=True, capture_output=True, timeout=120, check=False,
                          env=shim_environment(path_of(name, clean), MEMSHIM_LOG="none", MEMSHIM_YIELD="off", **dict(both, **({} if clean else faulty))))
    return done.returncode, done.stdout + done.stderr


def told():
    """What `memshim findings --json` says of each report, by name and whether it is the twin."""
    jobs = [(name, clean) for name in SCENES for clean in (False, True)]
    with ThreadPoolExecutor(4) as pool:
        for job, (status, said) in zip(jobs, pool.map(play, jobs)):
            if status:
                print("# %s: %d, %s" % (job, status, said))
    done = subprocess.run([MEMSHIM, "findings", "--json", *[path_of(*job) for job in jobs]], capture_output=True, text=True, check=False)
    if done.returncode:
        print("# " + done.stderr)
        return {job: None for job in jobs}
    return dict(zip(jobs, (report["findings"] for report in json.loads(done.stdout))))


def named(name, finding):
    """Whether it says where: the program's line, or what its row has instead."""
    wanted, own = SCENES[name][1], finding.get("at", {}).get("own", {})
    if wanted:
        return wanted in finding["advice"] or finding.get("own", {}).get("function") == wanted
    return own.get("function") == name and os.path.basename(own.get("file", "")).startswith("planted_") and own.get("line", 0) > 0


def table(found):
    rows = ["| program | its fault | found | bytes | says | where | on the twin |", "|---|---|---|---:|---|---|---|"]
    for name, (rule, wanted, _, _) in SCENES.items():
        first = next((finding for finding in found[name, False] or [] if finding["rule"] == rule), None)
        alarms = len(found[name, True] or [])
        rows.append("| `%s` | `%s` | %s | %s | %s | %s | %s |" % (
            name, rule, "yes" if first else "**missed**", "{:,}".format(first["bytes"]) if first and rule not in VARY else "",
            first["confidence"] if first else "", "`%s`" % (wanted or name) if first and named(name, first) else "**nowhere**",
            "**%d**" % alarms if alarms else "nothing"))
    return rows


def rules():
    """Each rule of findings.def with the texts of its numbers."""
    with open(os.path.join(TOP, "src", "report", "findings", "findings.def"), encoding="utf-8") as file:
        text = file.read()
    found = {name: [] for name in re.findall(r"^MS_FINDING\((\w+),", text, re.M)}
    for said, name in re.findall(r'^MS_FINDING_NUMBER\(.*"([^"]+)", (\w+)\)', text, re.M):
        found[name].append(said)
    return found


def check_page(page):
    sections = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^##? |\Z)", page, re.M | re.S))
    known = rules()
    fact(set(sections) == set(known), "docs/user/findings.md has a section for each rule", sorted(set(sections) ^ set(known)))
    silent = ["%s does not say %s" % (name, said) for name, numbers in known.items() for said in numbers
              if said not in " ".join(sections.get(name, "").split())]
    fact(not silent, "which says its numbers", silent)
    parts = ["%s has no %s" % (name, part) for name, text in sections.items() for part in ("*When*:", "*What to do*:") if part not in " ".join(text.split())]
    fact(not parts, "when it speaks, and what to do", parts)


def found_in(change):
    """What is found in the report of `pinned_elsewhere` after a change of it."""
    with open(path_of("pinned_elsewhere", False), encoding="utf-8") as file:
        report = json.load(file)
    change(report)
    path = os.path.join(TMP, "changed.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)
    done = subprocess.run([MEMSHIM, "findings", "--json", path], capture_output=True, text=True, check=False)
    return [(row["rule"], row["device"], row["bytes"]) for row in json.loads(done.stdout)["findings"]] if done.returncode == 0 else done.stderr


def check_contexts():
    """What no program of one process shows: others' memory on the device; and what is no context without a use."""
    def others(report):
        report["contexts"][0]["bytes"] = report["contexts"][0]["total_bytes"] = 5 << 30

    def managed(report):
        next(site for site in report["sites"] if site["kind"] == "device")["kind"] = "managed"

    def opened(report):
        pinned = next(site for site in report["sites"] if site["kind"] == "pinned")
        report["sites"].append(dict(pinned, id=len(report["sites"]), device=0, kind="imported"))

    def ended(report):
        report["contexts"][0].update(bytes=0, count=0, ended_ns=report["contexts"][0]["t_ns"])

    wanted = [("unused_device_context", 0, 300 << 20)]
    fact(found_in(others) == wanted, "what others hold is not a context's", found_in(others))
    for change in (managed, opened, ended):
        fact(found_in(change) == [], "a device is not told of: " + change.__name__, found_in(change))


def check_suppressed():
    """Also what was freed in the end, and so is no leak."""
    path = os.path.join(TMP, "suppressions")
    with open(path, "w", encoding="utf-8") as file:
        file.write("leak:growing_and_freed\n")
    done = subprocess.run([MEMSHIM, "findings", "--json", path_of("growing_and_freed", False)], capture_output=True, text=True, check=False,
                          env=dict(os.environ, MEMSHIM_SUPPRESSIONS=path))
    fact(done.returncode == 0 and json.loads(done.stdout)["findings"] == [], "growth is suppressed as leaks are", done.stdout + done.stderr)


def check_used():
    """What is used in a way that is hard to see; and what cannot be read is said to be inferred."""
    for mode in ("pool", "track"):
        paths = [os.path.join(TMP, "%s.%s.json" % (name, mode)) for name in USED]
        for name, path in zip(USED, paths):
            subprocess.run([PROGRAM, name], timeout=120, check=False,
                           env=shim_environment(path, MEMSHIM_LOG="none", MEMSHIM_MODE=mode, **USES))
        done = subprocess.run([MEMSHIM, "findings", "--json", *paths], capture_output=True, text=True, check=False)
        said = {name: row["findings"] for name, row in zip(USED, json.loads(done.stdout))} if done.returncode == 0 else done.stderr
        fact(isinstance(said, dict) and not any(said.values()), "what is used in other ways is no finding, " + mode, said)
    path = os.path.join(TMP, "alone.json")
    subprocess.run([PROGRAM, "used_by_name"], timeout=120, check=False,
                   env=shim_environment(path, MEMSHIM_LOG="none", MEMSHIM_USES="on"))
    done = subprocess.run([MEMSHIM, "findings", "--json", path], capture_output=True, text=True, check=False)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    fact(report["uses"]["state"] == "unread" and not json.loads(done.stdout)["findings"] and any("libmemshim-uses" in line for line in
         report["diagnostics"]), "without libmemshim-uses.so nothing is told, and that is said", done.stdout + done.stderr)
    confidences = {name: found[name, False][0]["confidence"] for name in ("freed_late_by_kernel", "freed_late_unread") if found[name, False]}
    fact(confidences == {"freed_late_by_kernel": "exact", "freed_late_unread": "inferred"},
         "what was not read makes a finding an inferred one", confidences)


def check_falls():
    """The twins of these two do what is advised."""
    wrong = []
    for name in ("freed_late", "allocated_early"):
        peaks = []
        for clean in (False, True):
            with open(path_of(name, clean), encoding="utf-8") as file:
                peaks.append(json.load(file)["devices"][0]["peak_live_bytes"])
        if [peaks[0] - peaks[1]] != [finding["bytes"] for finding in found[name, False]]:
            wrong.append((name, peaks, found[name, False]))
    fact(not wrong, "the peak falls by what the finding says", wrong)


plan(18)
found = told()
missed = [name for name, row in SCENES.items() if row[0] not in [finding["rule"] for finding in found[name, False] or []]]
fact(not missed, "none of %d faults is missed" % len(SCENES), ["%s: %s" % (name, found[name, False]) for name in missed])
more = ["%s: %s" % (name, sorted({finding["rule"] for finding in found[name, False] or []})) for name, row in SCENES.items()
        if {finding["rule"] for finding in found[name, False] or []} - {row[0]}]
fact(not more, "and nothing else is said of them", more)
alarms = ["%s: %s" % (name, found[name, True]) for name in SCENES if found[name, True] != []]
fact(not alarms, "no alarm on a twin", alarms)
lost = ["%s: %s" % (name, found[name, False]) for name, row in SCENES.items()
        if not any(finding["rule"] == row[0] and named(name, finding) for finding in found[name, False] or [])]
fact(not lost, "each says its line, or the variable", lost)
with open(PAGE, encoding="utf-8") as file:
    rules_page = file.read()
with open(TABLE, encoding="utf-8") as file:
    page = file.read()
head, rest = page.split(BEGIN)
made = BEGIN + "\n\n" + "\n".join(table(found)) + "\n\n" + END
if os.environ.get("FINDINGS_DOCS"):
    page = head + made + rest.split(END)[1]
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(page)
fact(WATCHED or made in page, "the table of planted.md is what was found (FINDINGS_DOCS=1 writes it)", table(found))
check_page(rules_page)
check_contexts()
check_suppressed()
check_used()
check_falls()
