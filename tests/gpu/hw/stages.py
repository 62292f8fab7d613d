"""The stages of scripts/hardware: what each needs, runs and reports. New ones go into STAGES, and nowhere else.

A stage is a function of a context (context.py); it returns rows for the tables, or raises Skip with the reason, or Failed. What
takes longer than a stage may is cut into several.
"""

import json
import os
import sys

import attacks
import compare
import device_memory
from context import Failed, Skip

# What memshim is asked to do, beside running natively: a name and the variables that ask for it.
MODES = {
    "track": {"MEMSHIM_MODE": "track"},
    "pool": {"MEMSHIM_MODE": "pool"},
    "strict": {"MEMSHIM_MODE": "pool", "MEMSHIM_FREE": "strict"},
}


def words(mode):
    """A mode's variables, for people."""
    return " ".join(f"{name}={value}" for name, value in MODES[mode].items())


def parsed(text, word, keys):
    """The lines "WORD value value..." of an output as rows."""
    rows = []
    for line in text.splitlines():
        words = line.split(" ", len(keys))
        if words[0] == word and len(words) == len(keys) + 1:
            rows.append(dict(zip(keys, words[1:])))
    return rows


# --- facts and conformance ---------------------------------------------------------------------------------------


def facts(context):
    """The open questions, asked of this machine."""
    text = context.run([context.program("facts")], keep="facts.txt", fails_ok=True)
    return parsed(text, "fact", ("id", "name", "value"))


def facts_static(context):
    """The same by a program with the CUDA runtime linked in."""
    if not os.path.exists(context.program("facts_static")):
        raise Skip("no static runtime where this was packed")
    if context.dry_run:
        raise Skip("the simulator cannot run a static CUDA runtime")
    text = context.run([context.program("facts_static")], keep="facts-static.txt", fails_ok=True)
    return parsed(text, "fact", ("id", "name", "value"))


def judged(context, left, right, where):
    """Differences between two outputs as rows; those that are not permitted make the stage fail, but only at its end."""
    rows = compare.permitted(context.read("hardware.md"), where)
    found = compare.differences(compare.values(left), compare.values(right), rows)
    worse = [name for name, _, _, reason in found if reason is None]
    if worse:
        context.verdict = f"{len(worse)} differences that are not permitted"
    return [{"line": n, "left": a, "right": b, "reason": r or "NOT PERMITTED"} for n, a, b, r in found]


def conformance(context):
    """The suite natively, against what the simulator says."""
    text = context.run([context.program("conformance")], keep="conformance-native.txt", fails_ok=True)
    rows = judged(context, context.read("conformance.golden"), text, "simulator" if context.dry_run else "hardware")
    context.note(f"{len(compare.values(text))} lines; left is the simulator, right is this machine")
    return rows


def conformance_under(mode):
    """The suite under memshim, against the suite natively on this machine."""

    def run(context):
        # On the simulator the stage before has shown that natively it is the golden output.
        if context.dry_run:
            native = context.read("conformance.golden")
        else:
            native = context.run([context.program("conformance")], fails_ok=True)
        env = context.preload(MODES[mode])
        text = context.run([context.program("conformance")], env=env, keep=f"conformance-{mode}.txt", fails_ok=True)
        rows = judged(context, native, text, mode)
        context.note(f"{len(compare.values(text))} lines; left is native, right is memshim with {words(mode)}")
        return rows

    return run


# --- benchmarks ----------------------------------------------------------------------------------------------------

COST_KEYS = ("call", "bytes", "state", "median_ns", "p90_ns", "least_ns", "count")


def cost_rows(context, state, env=None):
    """One run of the costs program."""
    repetitions = "10" if context.dry_run else "100"
    text = context.run([context.program("costs"), state, repetitions], env=env)
    rows = parsed(text, "cost", COST_KEYS)
    if not rows:
        raise Failed("the program printed no costs")
    return [{k: v if k in ("call", "state") else int(v) for k, v in row.items()} for row in rows]


def costs(state):
    """What the vendor's own calls cost, by size."""
    return lambda context: cost_rows(context, state)


def costs_followed(context):
    """What calls cost under memshim, beside what they cost natively in the same minute."""
    native = {(row["call"], row["bytes"]): row["median_ns"] for row in cost_rows(context, "idle")}
    rows = []
    for mode in MODES:
        for row in cost_rows(context, "idle", context.preload(MODES[mode])):
            before = native.get((row["call"], row["bytes"]), 0)
            rows.append({"call": row["call"], "bytes": row["bytes"], "mode": mode, "native_ns": before,
                         "ns": row["median_ns"], "ratio": round(row["median_ns"] / before, 2) if before else None})
    return rows


def taking_turns(context, command, env, unit, rounds=2):
    """A program that prints one JSON object, natively and under each mode of memshim, in turns: one round, and more while the
    stage has time for a whole one. Rows with the ratio."""
    variants = [("native", {})] + [(mode, None) for mode in MODES]
    taken = {name: [] for name, _ in variants}
    seen, peaks = {}, {}
    for i in range(1 if context.dry_run else rounds):
        if i and context.spent() * (i + 1) / i > context.seconds:
            break
        for name, more in variants:
            if more is None:
                more = context.preload(MODES[name], report=f"{name}.json")
            text, peak = device_memory.one_run(context, command, {**env, **more})
            peaks[name] = max(peaks.get(name) or 0, peak or 0) or None
            try:
                taken[name].append(json.loads(text.strip().splitlines()[-1]))
            except (ValueError, IndexError):
                raise Failed(f"{os.path.basename(command[-1])} printed no figures") from None
            if name != "native":
                seen[name] = context.report_figures(f"{name}.json")
    rows = []
    before = min(run[unit] for run in taken["native"])
    for name, _ in variants:
        best = min(taken[name], key=lambda run: run[unit])
        rows.append({"variant": name, **best, "runs": len(taken[name]), "ratio": round(best[unit] / before, 4),
                     "device_peak_mib": peaks[name],
                     "memshim_peak_live_bytes": seen.get(name, {}).get("peak_live_bytes"),
                     "memshim_calls": seen.get(name, {}).get("calls"), "report_valid": seen.get(name, {}).get("valid")})
    return rows


def python_bench(script, module, unit, env=None, arguments=()):
    """A benchmark in Python that needs a package."""

    def run(context):
        context.need_module(module)
        if context.dry_run:
            raise Skip(f"{module} needs a GPU: its libraries carry a static CUDA runtime")
        return taking_turns(context, [sys.executable, context.script(script), *arguments], env or {}, unit)

    return run


def nccl(context):
    """ncclMemAlloc and ncclMemFree in a loop."""
    library = context.find_library("libnccl.so.2")
    if context.dry_run:
        library = os.path.join(context.pack, "sim", "libnccl.so.2")
        if not os.path.exists(library):
            raise Skip("there is no simulated NCCL, and the real one needs a GPU")
    if not library:
        raise Skip("NCCL (libnccl.so.2) is not installed")
    return taking_turns(context, [sys.executable, context.script("nccl_loop.py"), library], {}, "pair_ns")


TORCH = {
    "native": {},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "uncached": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
}

# Name, title, the function. Order is the order in which they run.
STAGES = [
    ("facts", "The open questions", facts),
    ("facts-static", "The open questions, static runtime", facts_static),
    ("conformance", "Conformance, natively", conformance),
    *((f"conformance-{m}", f"Conformance with {words(m)}", conformance_under(m)) for m in MODES),
    *attacks.STAGES,
    *device_memory.STAGES,
    ("costs-idle", "What calls cost, idle device", costs("idle")),
    ("costs-busy", "What calls cost, busy device", costs("busy")),
    ("costs-followed", "What calls cost under memshim", costs_followed),
    *((f"torch-{name}", f"PyTorch: a transformer's training step, {name}", python_bench("torch_step.py", "torch", "median_ms", env))
      for name, env in TORCH.items()),
    ("cupy", "CuPy with its pool off", python_bench("cupy_loop.py", "cupy", "median_ms")),
    ("nccl", "NCCL: ncclMemAlloc and ncclMemFree", nccl),
]
