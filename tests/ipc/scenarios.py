#!/usr/bin/env python3
"""Memory of one process in another: natively, under the pool, and half and half.

What a scenario answers must be the same natively and with every process under memshim, for a block that shares its allocation with others,
for one of the next tier, and for one that is an allocation of the vendor's. What the simulator cannot answer natively (it opens handles of what
was freed), and what only memshim has (tokens, ledgers, MEMSHIM_IPC), is stated fact by fact. Run by the harness.
"""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agents import BUILD, LAZY, TMP, Agent  # noqa: E402
from hooklib import fact, plan  # noqa: E402

SIZES = {"packed": 5000, "run": 3 << 20, "single": 20 << 20}
if os.environ["TEST_SANITIZE"]:
    del SIZES["run"]  # which differs from the smaller one in the pool alone; hundreds of processes take minutes there
TOKEN = "f56d73686970639d"
INVALID = 1


def export(agent, name, size, value):
    """A new block with neighbours on both sides, filled; its handle."""
    agent("alloc", 61, size), agent("alloc", name, size), agent("alloc", 62, size)
    for neighbour in (61, 62):
        agent("set", neighbour, 0, size, 200)
    agent("set", name, 0, size, value)
    return agent("export", name, 0)[1]


def share(make, size):
    a, b = make(), make()
    handle = export(a, 1, size, 42)
    said = [b("open", 1, handle, LAZY), b("sum", 1, 0, size, 42), b("range", 1, size // 2), b("range", 1, size - 1), b("ranges", 1)]
    said += [b("open", 2, handle, LAZY), b("same", 1, 2), b("id", 1, 2)]
    said += [b("set", 1, 10, 100, 7), a("sum", 1, 0, 10, 42), a("sum", 1, 10, 100, 7), a("sum", 1, 110, size - 110, 42)]
    said += [b("close", 1, 0), b("sum", 2, 10, 100, 7), b("close", 2, 0), b("close", 2, 0)]
    said += [b("open", 3, handle, LAZY), b("sum", 3, 10, 100, 7), b("free", 3), b("close", 3, 1), b("close", 3, 0)]
    said += [a("sum", 61, 0, size, 200), a("sum", 62, 0, size, 200)]
    said += [a("export", 1, 0)[1] == handle] + inside(a, b, size, handle)
    a.end(), b.end()
    return said


def inside(a, b, size, handle):
    """A handle of an address inside a block is the block's: whichever is asked for first, and of the last byte too."""
    said = [a("export", 1, at)[1] == handle for at in (1, 512, size // 2, size - 1)]
    said += [a("alloc", 2, size), a("set", 2, 0, size, 43)]
    late = a("export", 2, size - 1)[1]
    said += [a("export", 2, 0)[1] == late, late != handle]
    return said + [b("open", 5, late, LAZY), b("sum", 5, 0, size, 43), b("range", 5, 0), b("close", 5, 0)]


def several(make, size):
    """Blocks of two exporters, opened and closed in different orders; each has its own identity."""
    a, b, c = make(), make(), make()
    handles = [export(a, n, size, n) for n in (1, 2, 3)] + [export(c, n, size, n) for n in (4, 5)]
    said = [b("open", n + 1, handles[n], LAZY) for n in range(5)]
    said += [b("id", n, m) for n in range(1, 6) for m in range(n + 1, 6)]
    said += [b("close", 2, 0)] + [b("sum", n, 0, size, n) for n in (1, 3, 4, 5)]
    said += [b("close", 5, 0), b("close", 1, 0), b("sum", 3, 0, size, 3), b("sum", 4, 0, size, 4)]
    said += [b("open", 1, handles[0], LAZY), b("sum", 1, 0, size, 1), b("range", 1, 5)]
    said += [b("close", 3, 0), b("close", 4, 0), b("close", 1, 0), b("close", 1, 0)]
    for agent in (a, b, c):
        agent.end()
    return said


def refusals(make, size):
    a, b = make(), make()
    handle = export(a, 1, size, 42)
    said = [a("export", 1, 256)[0], b("open", 1, handle, 0), b("open", 1, handle, 2), b("open", 1, "00" * 64, LAZY)]
    said += [a("open", 2, handle, LAZY), b("export", 40, 0)[0]]
    said += [b("open", 1, handle, LAZY), b("export", 1, 0)[0], b("close", 1, 0)]
    said += [a("free", 1), a("export", 1, 0)[0], a("free", 1)]
    a.end(), b.end()
    return said


def contexts(make, size):
    a, b = make(), make()
    handle, other = export(a, 1, size, 42), export(a, 2, size, 43)
    said = [b("new", 1, 0), b("open", 1, handle, LAZY), b("use", 0), b("open", 2, handle, LAZY), b("same", 1, 2)]
    said += [b("sum", 1, 0, size, 42), b("sum", 2, 0, size, 42), b("end", 1), b("sum", 2, 0, size, 42), b("range", 2, 1)]
    said += [b("open", 3, handle, LAZY), b("same", 2, 3), b("open", 4, other, LAZY), b("sum", 4, 0, size, 43)]
    said += [b("close", 2, 0), b("close", 3, 0), b("close", 4, 0), b("close", 4, 0)]
    a.end(), b.end()
    return said


def devices(make, size):
    """The block lies on another device than the importer's context; the older function opens it as well."""
    a, b = make(MEMSIM_DEVICES="2"), make(MEMSIM_DEVICES="2")
    said = [a("new", 1, 1)]
    handle = export(a, 1, size, 42)
    said += [b("open", 1, handle, LAZY), b("device", 1), b("sum", 1, 0, size, 42), b("old", 2, handle, LAZY), b("same", 1, 2)]
    said += [b("new", 1, 1), b("open", 3, handle, LAZY), b("device", 3), b("set", 3, 0, size, 43), b("close", 3, 0)]
    said += [a("sum", 1, 0, size, 43), b("use", 0), b("close", 1, 0), b("close", 2, 0)]
    a.end(), b.end()
    return said


def waiting(make, size):
    """A close waits for the work that is under way in the block, also where the allocation stays open for another one."""
    a, b = make(), make()
    handles = export(a, 1, size, 1), export(a, 2, size, 2)
    said = [b("open", 1, handles[0], LAZY), b("open", 2, handles[1], LAZY), b("later", 1, 300, size, 9), b("close", 1, 0)]
    said += [a("sum", 1, 0, size, 9), b("sum", 2, 0, size, 2), b("close", 2, 0)]
    a.end(), b.end()
    return said


def capturing(make, size):
    """Exports, opens and closes while a capture is open in the context, of each mode."""
    a, b = make(), make()
    handles = [export(a, n, size, n) for n in (1, 2)]
    said = [b("open", 1, handles[0], LAZY), b("open", 2, handles[1], LAZY)]
    for mode in (0, 1, 2):
        said += [a("capture", mode), a("export", 1, 0)[0], a("export", 62, 0)[0], a("endcapture")]
        said += [b("capture", mode), b("open", 3, handles[0], LAZY), b("close", 1, 0), b("close", 3, 0), b("endcapture")]
        said += [b("open", 1, handles[0], LAZY), b("sum", 1, 0, size, 1), b("sum", 2, 0, size, 2)]
    a.end(), b.end()
    return said


def freed_while_open(make, size):
    a, b = make(), make()
    handle = export(a, 1, size, 42)
    said = [b("open", 1, handle, LAZY), b("sum", 1, 0, size, 42), a("free", 1), b("close", 1, 0), b("close", 1, 0)]
    a.end(), b.end()
    return said


def ended(make, size):
    """The exporter is killed, or ends, with its memory open elsewhere."""
    said = []
    for how in ("kill", "end"):
        a, b = make(), make()
        handle, other = export(a, 1, size, 42), export(a, 2, size, 43)
        said += [b("open", 1, handle, LAZY)]
        a.kill() if how == "kill" else a.end()
        said += [b("open", 2, other, LAZY) != 0, b("close", 1, 0), b("open", 1, handle, LAZY) != 0]
        b.end()
    return said


def forked(make, size):
    a, b = make(), make()
    handle = export(a, 1, size, 42)
    said = [b("open", 1, handle, LAZY), a("fork"), b("fork"), b("sum", 1, 0, size, 42), b("open", 2, handle, LAZY), b("close", 1, 0)]
    said += [b("close", 2, 0), a("export", 1, 0)[1] == handle]
    a.end(), b.end()
    return said


def many(make, size):
    a, b = make(), make()
    handle = export(a, 1, size, 42)
    said = [a("churn", 1000 if size < 1 << 20 else 50, size), b("reopen", 1000 if size < 1 << 20 else 50, handle)]
    said += [b("open", 1, handle, LAZY), b("sum", 1, 0, size, 42), b("close", 1, 0)]
    a.end(), b.end()
    return said


SAME = {"sharing": share, "several blocks": several, "refusals": refusals, "contexts": contexts, "devices": devices, "a close that waits": waiting, "captures": capturing,
        "freed while open": freed_while_open, "an exporter that ends": ended, "forks": forked, "many rounds": many}


def native(**more):
    return Agent(shim=False, **more)


def same(title, play, size):
    want, got = play(native, size), play(Agent, size)
    fact(want == got, title, ["natively %s" % (want,), "under memshim %s" % (got,)])


def tokens():
    """A token is a token, an importer without memshim is refused, and so is whatever is not quite the token."""
    a, b, c = Agent(), Agent(), Agent(shim=False)
    handle = export(a, 1, SIZES["packed"], 42)
    fact(handle.startswith(TOKEN), "a packed block is exported by a token", [handle])
    fact(not export(a, 2, SIZES["single"], 42).startswith(TOKEN), "an allocation of the vendor's by the vendor's handle")
    fact(c("open", 1, handle, LAZY) == INVALID, "an importer without memshim is refused the token")
    opened = []
    for bit in range(512):
        changed = bytearray.fromhex(handle)
        changed[bit // 8] ^= 1 << bit % 8
        opened += [bit] if b("open", 1, changed.hex(), LAZY) == 0 else []
    fact(not opened, "a token with one bit changed opens nothing", opened)
    fact(b("open", 1, handle, LAZY) == 0 and b("sum", 1, 0, SIZES["packed"], 42) == [0, -1], "the sound one still does")
    fact(b.said().count("\n") < 70, "and says no more than it must")
    for agent in (a, b, c):
        agent.end()


def stale():
    """What was freed cannot be opened any more, whoever lies there now."""
    a, b = Agent(), Agent()
    size = SIZES["packed"]
    handle = export(a, 1, size, 42)
    b("open", 1, handle, LAZY), b("close", 1, 0)
    a("free", 1)
    fact(b("open", 1, handle, LAZY) == INVALID, "a freed block's token is refused")
    fact("was freed" in b.said() and b.said().count("\n") == 1, "in one line", [b.said()])
    handles = {a("alloc", n, size) == 0 and a("export", n, 0)[1] for n in range(2, 40)}
    fact(len(handles) == 38 and handle not in handles, "blocks that come after have tokens of their own")
    fact(b("open", 1, handle, LAZY) == INVALID, "and do not bring the old one back")
    a("new", 1, 0), a("alloc", 41, size)
    handle = a("export", 41, 0)[1]
    before = b("open", 2, handle, LAZY)
    a("end", 1)
    fact((before, b("open", 3, handle, LAZY)) == (0, INVALID), "a block that died with its context neither")
    a.kill()
    fact(b("open", 4, sorted(handles)[0], LAZY) == INVALID and "has ended" in b.said(), "nor one of a process that was killed", [b.said()])
    b.end()


def modes():
    size = SIZES["packed"]
    a, track, off = Agent(), Agent(MEMSHIM_MODE="track"), Agent(MEMSHIM_MODE="off")
    handle = export(a, 1, size, 42)
    fact([track("open", 1, handle, LAZY), track("sum", 1, 0, size, 42), track("range", 1, 9), track("close", 1, 0)] == [0, [0, -1], [0, 0, size], 0],
         "an importer that only records opens tokens as well")
    fact(off("open", 1, handle, LAZY) == INVALID, "one where memshim is off does not")
    elsewhere = os.path.join(TMP, "elsewhere")
    os.mkdir(elsewhere)
    b = Agent(MEMSHIM_DIR=elsewhere)
    fact(b("open", 1, handle, LAZY) == INVALID and b.said().count("\n") == 1 and "MEMSHIM_DIR" in b.said(),
         "one whose ledgers are elsewhere is refused, and told why in one line", [b.said()])
    handle = export(track, 3, size, 42)
    c = Agent(shim=False)
    fact([c("open", 1, handle, LAZY), c("sum", 1, 0, size, 42)] == [0, [0, -1]], "what an exporter that only records allocates is the vendor's")
    for agent in (a, b, c, track, off):
        agent.end()


def native_for(title, exporter, before=()):
    """A small block of this exporter is opened by a process without memshim."""
    size, plain = SIZES["packed"], Agent(shim=False)
    for words in before:
        exporter(*words)
    handle = export(exporter, 1, size, 42)
    got = [plain("open", 1, handle, LAZY), plain("sum", 1, 0, size, 42), plain("range", 1, 9), exporter("sum", 61, 0, size, 200)]
    fact(got == [0, [0, -1], [0, 0, size], [0, -1]], title, [got, handle, exporter.said()])
    plain.end()
    return exporter.end()


def transports():
    lib = os.path.join(BUILD, "tests", "ipc", "libmpi.so.40")
    native_for("MEMSHIM_IPC=native: an importer without memshim opens small blocks", Agent(MEMSHIM_IPC="native"))
    native_for("beside MPI the same by itself", Agent(LD_PRELOAD_MORE=lib))
    a, size = Agent(), SIZES["packed"]
    early = export(a, 9, size, 5)
    a("alloc", 10, size)
    report = native_for("also if MPI is loaded later", a, [("load", lib), ("alloc", 50, size)])
    fact(early.startswith(TOKEN), "what was packed before has a token")
    said = [d for d in report["diagnostics"] if "libmpi.so.40" in str(d)]
    fact(said, "the report says so", report["diagnostics"])
    host, bootstrap = (shutil.copy(lib, os.path.join(TMP, name)) for name in ("libnvshmem_host.so.3", "nvshmem_bootstrap_uid.so.3"))
    a = Agent(LD_PRELOAD_MORE=host)
    fact(export(a, 9, size, 5).startswith(TOKEN), "NVSHMEM that is only loaded, as by every PyTorch, keeps nothing from being packed")
    native_for("once it opened its bootstrap it does", a, [("load", bootstrap), ("alloc", 50, size)])
    a = Agent(MEMSHIM_IPC="emulate", LD_PRELOAD_MORE=lib)
    fact(export(a, 1, size, 1).startswith(TOKEN), "MEMSHIM_IPC=emulate packs beside MPI as well")
    a.end()
    native_for("without a ledger file too, for nobody could read it", Agent(MEMSHIM_DIR=os.path.join(TMP, "not-there")))


def refusing():
    """The vendor refuses a call: its status is the program's, and everything is as it was."""
    size = SIZES["packed"]
    a, b = Agent(MEMSIM_FAIL="cuIpcGetMemHandle@1=2"), Agent(MEMSIM_FAIL="cuIpcOpenMemHandle_v2@2=205,cuIpcCloseMemHandle@1=999")
    a("alloc", 1, size), a("set", 1, 0, size, 42)
    said = [a("export", 1, 0)[0]]
    status, handle = a("export", 1, 0)
    said += [status, b("open", 1, handle, LAZY), b("open", 2, handle, LAZY), b("open", 2, handle, LAZY), b("same", 1, 2)]
    said += [b("close", 1, 0), b("sum", 1, 0, size, 42), b("close", 1, 0), b("sum", 2, 0, size, 42), b("close", 2, 0), b("close", 2, 0)]
    fact(said == [2, 0, 0, 205, 0, 1, 999, [0, -1], 0, [0, -1], 0, 1], "the vendor's refusals are passed on and change nothing", [said])
    a.end(), b.end()
    # A driver that opens an allocation but once in a context.
    a, b = Agent(), Agent(MEMSIM_FAIL="cuIpcOpenMemHandle_v2@2+=208")
    handles = [export(a, n, size, n) for n in (1, 2)]
    said = [b("open", n, handles[n - 1], LAZY) for n in (1, 2)] + [b("open", 3, handles[0], LAZY)]
    said += [b("sum", 1, 0, size, 1), b("sum", 2, 0, size, 2), b("range", 2, 7), b("close", 1, 0), b("sum", 2, 0, size, 2)]
    said += [b("close", 2, 0), b("sum", 2, 0, size, 2)[0], b("close", 2, 0)]
    fact(said == [0, 0, 208, [0, -1], [0, -1], [0, 0, size], 0, [0, -1], 0, 1, 1],
         "where the driver opens an allocation only once, its other blocks are opened still", [said])
    a.end(), b.end()


def reports():
    """Each import is one block of its own size, and nothing is left of those that were closed."""
    size, a, b = SIZES["packed"], Agent(), Agent()
    handles = [export(a, n, size + n, n) for n in (1, 2)]
    for n in (1, 2):
        b("open", n, handles[n - 1], LAZY)
    b("open", 3, handles[0], LAZY), b("close", 2, 0)
    report = b.end()
    blocks = [(k["kind"], k["bytes"]) for s in report["segments"] for k in s["blocks"]]
    fact(blocks == [("imported", size + 1)], "the importer's report has what is open, once", blocks)
    fact(sum(d["live_bytes"] for d in report["devices"]) == 0, "which is no memory of its own")
    for n in (1, 2, 61, 62):
        a("free", n)
    done = a.end()
    valid = subprocess.run([os.environ["TEST_VALID"], a.report, b.report], capture_output=True, text=True, check=False)
    fact(valid.returncode == 0 or not os.path.exists(os.environ["TEST_BIN"]), "both are valid", [valid.stdout, valid.stderr])
    live = sum(d["live_bytes"] for d in done["devices"])
    fact(live == 2 * (size + 1), "the exporter's has what it did not free", [live])


def rounds():
    """Thousands of exports that were freed: nothing is held for them."""
    a = Agent()
    said = [a("churn", 2000, 5000), a("churn", 500, 3 << 20), a("churn", 50, 20 << 20)]
    parts = [d["reserved_parts"] for d in a.end()["devices"]]
    fact(said == [[0, 0]] * 3 and [p["pinned"] + p["requested"] for p in parts] == [0], "nothing is held for what was exported and freed",
         [said, parts])
    reserved = sum(sum(p.values()) for p in parts)
    fact(reserved < 200 << 20, "and what is reserved stays within what one block of each size needs", [parts])


plan(len(SAME) * len(SIZES) + 33)
for name, scenario in SAME.items():
    for tier, length in SIZES.items():
        same("%s: %s" % (name, tier), scenario, length)
tokens()
stale()
modes()
transports()
refusing()
rounds()
reports()
