"""Stages that attack the pool: late work on freed blocks, what programs rely on in the vendor's allocator, kernels that hold the device."""

import concurrent.futures
import os
import re
import subprocess

from context import Failed

POOL = {"MEMSHIM_MODE": "pool"}
STRICT = {"MEMSHIM_MODE": "pool", "MEMSHIM_FREE": "strict"}
IMMEDIATE = {"MEMSHIM_MODE": "pool", "MEMSHIM_FREE": "immediate"}
TOLD = re.compile(r"operations (\d+), blocks checked (\d+), late copies checked (\d+), contexts (\d+), resets (\d+), seconds ([0-9.]+)\n"
                  r"wrong: blocks (\d+), late copies (\d+), statuses (\d+)")
KEYS = ("operations", "blocks_checked", "late_copies_checked", "contexts", "resets", "seconds", "wrong_blocks", "wrong_copies",
        "wrong_statuses")


def hazards(context):
    """The stress program natively, with the pool, and with its fence switched off, which must be caught."""
    few, many = (4000, 20000) if context.dry_run else (20000, 2000000)
    rows = []
    for name, env, count, words in (("native", None, few, ""), ("pool", POOL, many, ""), ("strict", STRICT, few, ""),
                                    ("immediate", IMMEDIATE, 2000000, "stop")):
        more = dict(context.preload(env) if env else {}, HAZARDS=words)
        text = context.run([context.program("hazards"), str(count), "8", "1"], env=more, keep=f"hazards-{name}.txt", fails_ok=True)
        told = TOLD.search(text)
        if not told:
            raise Failed(f"{name}: the program printed no figures")
        values = [float(v) if "." in v else int(v) for v in told.groups()]
        rows.append({"variant": name, **dict(zip(KEYS, values))})
    context.verdict = ""  # one of them has to fail
    wrong = [row["variant"] for row in rows
             if bool(row["wrong_blocks"] + row["wrong_copies"] + row["wrong_statuses"]) != (row["variant"] == "immediate")]
    if wrong:
        context.verdict = "not as it must be: " + ", ".join(wrong)
    return rows


def output(context, program, arguments, env, seconds):
    """What a program prints, and how it ended; no failure of it ends the stage."""
    try:
        done = subprocess.run([context.program(program), *arguments], env=context.environment(env), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"still running after {seconds} seconds"
    return f"{done.stdout}exit {done.returncode}"


def names(context, program):
    """The parts of a program with the simulator's variables that each wants; some of them, where it is only a dry run."""
    rows = [line.split() for line in context.run([context.program(program), "--list"]).splitlines()]
    return [(name, dict(word.split("=", 1) for word in words) if context.dry_run else {}) for name, *words in rows][::6 if context.dry_run else 1]


def permitted(context):
    """The traps that docs/differences.md lists."""
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", context.read("differences.md"), re.M))


def traps(context):
    """Each trap natively, with the pool, and with MEMSHIM_FREE=strict. Rows for those that differ."""
    may_differ = permitted(context)

    def look(part):
        name, env = part
        native = output(context, "traps", [name], env, 60)
        return [(name, mode, native == output(context, "traps", [name], {**env, **context.preload(variables)}, 60))
                for mode, variables in (("pool", POOL), ("strict", STRICT))]

    parts = names(context, "traps")
    with concurrent.futures.ThreadPoolExecutor(2 if context.dry_run else 1) as pool:
        seen = [row for rows in pool.map(look, parts) for row in rows]
    rows = [{"trap": name, "mode": mode, "listed": name in may_differ} for name, mode, same in seen if not same]
    worse = sum(not row["listed"] for row in rows)
    if worse:
        context.verdict = f"{worse} traps differ that are not listed in docs/differences.md"
    context.note(f"{len(parts)} traps, each natively, with the pool and with strict; rows are those that differ")
    return rows


def nohang(context):
    """Each program that holds the device, natively and with the pool: it ends in both."""
    rows = []
    for name, env in names(context, "nohang"):
        for kind in ("kernel", "value", "function"):
            native = output(context, "nohang", [name, kind], env, 30)
            shimmed = output(context, "nohang", [name, kind], {**env, **context.preload({**POOL, "MEMSHIM_OOM_WAIT_MS": "300"})}, 30)
            rows.append({"program": name, "held_by": kind, "ends_natively": not native.startswith("still"),
                         "ends_with_pool": not shimmed.startswith("still"), "same": native == shimmed})
    worse = sum(row["ends_natively"] and not row["ends_with_pool"] for row in rows)
    if worse:
        context.verdict = f"{worse} programs hang under memshim that end natively"
    return rows


STAGES = [
    ("hazards", "Late work on freed blocks", hazards),
    ("traps", "What programs rely on in the vendor's allocator", traps),
    ("nohang", "Programs that hold the device", nohang),
]
