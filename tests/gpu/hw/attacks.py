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
    few, many = (4000, 20000) if context.dry_run else (5000, 60000)
    rows = []
    for name, env, count, words in (("native", None, few, ""), ("pool", POOL, many, ""), ("strict", STRICT, few, ""),
                                    ("immediate", IMMEDIATE, many * 30, "stop")):
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
    """The traps that docs/user/differences.md lists."""
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", context.read("differences.md"), re.M))


def side_by_side(context, look, parts):
    """Rows of a function for each part, several at a time, and once more alone for a part whose last column is not true, as
    programs beside it may have been seen in what it asks of the device. Parts for which no time is left are left out, with a note."""

    def in_time(part):
        return look(part) if context.spent() < context.seconds * 0.7 else []

    with concurrent.futures.ThreadPoolExecutor(max(2, min(6, (os.cpu_count() or 2) // 2))) as pool:
        seen = list(pool.map(in_time, parts))
    context.note(f"{sum(bool(rows) for rows in seen)} of {len(parts)} were run in the time that the stage has")
    return [row for part, rows in zip(parts, seen)
            for row in (rows if all(row[-1] for row in rows) or context.spent() > context.seconds else look(part))]


def traps(context):
    """Each trap natively, with the pool, and with MEMSHIM_FREE=strict. Rows for those that differ."""
    may_differ = permitted(context)

    def look(part):
        name, env = part
        native = output(context, "traps", [name], env, 60)
        return [(name, mode, native == output(context, "traps", [name], {**env, **context.preload(variables)}, 60))
                for mode, variables in (("pool", POOL), ("strict", STRICT))]

    parts = names(context, "traps")
    seen = side_by_side(context, look, parts)
    rows = [{"trap": name, "mode": mode, "listed": name in may_differ} for name, mode, same in seen if not same]
    worse = sum(not row["listed"] for row in rows)
    if worse:
        context.verdict = f"{worse} traps differ that are not listed in docs/user/differences.md"
    context.note(f"{len(parts)} traps, each natively, with the pool and with strict; rows are those that differ")
    return rows


def nohang(context):
    """Each program that holds the device, natively and with the pool: it ends in both."""

    def look(part):
        name, env, kind = part
        native = output(context, "nohang", [name, kind], env, 30)
        shimmed = output(context, "nohang", [name, kind], {**env, **context.preload({**POOL, "MEMSHIM_OOM_WAIT_MS": "300"})}, 30)
        ends = not native.startswith("still"), not shimmed.startswith("still")
        return [(name, kind, *ends, native == shimmed, ends[1] or not ends[0])]

    parts = [(name, env, kind) for name, env in names(context, "nohang") for kind in ("kernel", "value", "function")]
    keys = ("program", "held_by", "ends_natively", "ends_with_pool", "same")
    rows = [dict(zip(keys, row)) for row in side_by_side(context, look, parts)]
    worse = sum(row["ends_natively"] and not row["ends_with_pool"] for row in rows)
    if worse:
        context.verdict = f"{worse} programs hang under memshim that end natively"
    return rows


STAGES = [
    ("hazards", "Late work on freed blocks", hazards),
    ("traps", "What programs rely on in the vendor's allocator", traps),
    ("nohang", "Programs that hold the device", nohang),
]
