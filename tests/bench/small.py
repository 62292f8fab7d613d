"""scripts/bench small: what ten small programs take of the device beside what they asked for. docs/internals/bench.md says what is measured."""

import json
import os
import tempfile

import allocators

# program, how it asks, streams; the quickstart's program asks in both ways, on four streams
PROGRAMS = [(name, kind, streams) for kind, streams in (("malloc", 1), ("async", 1), ("async", 4)) for name in ("blocks", "growing", "tiny")]
PROGRAMS.append(("quickstart", "both", 4))
WAYS = {"malloc": "runtime", "async": "runtime-async"}


def told(path):
    """What the report says: the most that was live, and what the pool had at most, without what was in limbo then."""
    with open(path, encoding="utf-8") as file:
        device = json.load(file)["devices"][0]
    return device["peak_live_bytes"], device["peak_reserved_bytes"] - device["peak_parts"]["limbo"]


def small_row(tool, options, program, kind, streams):
    """One run; the simulator counts what was taken of the device, the report says what memshim had of it."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "report.json")
        shimmed = "LD_PRELOAD" in tool.environment
        more = {"MEMSIM_COUNT": "1", **({"MEMSHIM_REPORT": path} if shimmed else {})}
        if program == "quickstart":
            ran = allocators.Tool(tool.name, [os.path.join(options.build, "tests/programs/training")], tool.environment)
            ran.run_quietly(options, more)
            figures = None
        else:
            ran = allocators.Tool(tool.name, [*tool.command[:-1], WAYS[kind]], tool.environment)
            figures = ran.run(options, ["small", program, streams], more)
        live, held = told(path) if os.path.exists(path) else (None, None)
    live = int(figures["live_peak_bytes"]) if figures else live
    reserved = int(figures["reserved_peak_bytes"]) if figures else None
    return {
        "allocator": tool.name,
        "program": program,
        "calls": kind,
        "streams": streams,
        "live_peak_bytes": live,
        "reserved_peak_bytes": reserved,
        "reserved_over_live": reserved and allocators.rounded(reserved / live, 3),
        "worst_over_live": figures and allocators.rounded(figures["worst_over_live"], 3),
        "held_over_live": held and allocators.rounded(held / live, 3),
        "vendor_calls": figures and int(figures["vendor_calls"]),
    }


def bench_small(options):
    """Each program natively and under memshim; what a program of its own account prints is left out natively."""
    tools = allocators.ours(options, {})
    return [small_row(tool, options, *program) for program in PROGRAMS for tool in tools
            if program[0] != "quickstart" or tool.name != "native"]
