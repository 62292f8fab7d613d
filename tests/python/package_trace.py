#!/usr/bin/env python3
"""The Python package's reader of traces, against the lines that the command prints: of a program with phases and threads, of one whose
oldest events have fallen out, as written, compressed and as lines; and what is cut, or damaged."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reader  # noqa: E402
from reader import fact  # noqa: E402

reader.need_command()
from hooklib import BUILD, MEMSHIM, TMP, plan, shim_environment, skip, trace_lines  # noqa: E402
import memshim  # noqa: E402
from memshim.errors import MissingPackage  # noqa: E402

LETTERS = {("alloc", "blocks"): "a", ("free", "blocks"): "f", ("alloc", "tensors"): "A", ("free", "tensors"): "F"}


def told(path):
    """The events, as the command's lines have them, but for threads."""
    trace, rows = memshim.Trace(path), []
    for event in trace:
        us = event.ns // 1000
        if event.op in ("alloc", "free"):
            row = [us, LETTERS[event.op, event.layer], event.id, event.bytes, event.stream]
            if event.op == "alloc":
                row += ["-" if event.site is None else event.site, hex(event.address), event.kind]
        else:
            row = ["#", event.op, us] + ([event.phase] if event.op != "end" else []) + ([event.id] if event.op != "mark" else [])
        rows.append([str(word) for word in row])
    return trace, rows


def lines(path):
    rows = [line.split() for line in trace_lines(path)]
    return [row[:5] if row[:2] == ["#", "begin"] else row for row in rows if row[0] != "#" or row[1] in ("begin", "end", "mark")]


def record(name, words, **variables):
    path = os.path.join(TMP, name)
    subprocess.run(words, env=shim_environment(os.path.join(TMP, "r.json"), MEMSHIM_TRACE=path, NVTX_INJECTION64_PATH=os.environ["TEST_LIB"],
                                               **variables), stdout=subprocess.DEVNULL, check=True)
    return path


def refused(path, words):
    """True where reading it says so, in one line that names the file."""
    try:
        list(memshim.Trace(path))
    except memshim.ReportError as error:
        return words in str(error) and path in str(error) and "\n" not in str(error)
    return False


plan(9)
book = record("book.trace", [os.path.join(BUILD, "tests", "phases", "phases_user"), "book", "4"])
trace, rows = told(book)
fact(rows == lines(book) and any(row[1] == "begin" for row in rows), "every event of blocks and phases", [rows[:3], lines(book)[:3]])
threads = [event.thread for event in trace]
fact(len(set(threads)) > 1 and min(threads) > 0 and trace.pid > 0 and trace.program == "phases_user" and trace.run and "allocs" in trace.summary
     and {phase.name for phase in trace.phases.values()} >= {"forward", "backward"}, "threads, phases and the head", [set(threads), trace.phases])
bounded = record("bounded.trace", [os.path.join(BUILD, "tests", "ledger", "churn"), os.path.join(TMP, "log"), "3", "400000"], MEMSHIM_TRACE_MAX="1M")
trace, rows = told(bounded)
fact(rows == lines(bounded) and trace.fallen > 0, "one whose oldest events have fallen out", [trace.fallen, rows[:2], lines(bounded)[:2]])
text = os.path.join(TMP, "text")
same = []
for path in (book, bounded):
    subprocess.run([MEMSHIM, "trace", "--text", "-f", "-o", text, path], check=True)
    same.append((told(text)[1], memshim.Trace(text).pid) == (told(path)[1], memshim.Trace(path).pid))
fact(all(same), "its lines are the same trace", same)
packed = os.path.join(TMP, "packed.trace")
subprocess.run([MEMSHIM, "run", "-q", "-f", "--sim", "-o", "none", "--trace", packed, "--", os.path.join(BUILD, "tests", "programs", "training"), "3"],
               stdout=subprocess.DEVNULL, check=True)
try:
    fact(told(packed)[1] == lines(packed), "one that memshim run has compressed")
except MissingPackage as error:
    skip("one that memshim run has compressed", str(error))
with open(book, "rb") as file:
    data = file.read()
cut = os.path.join(TMP, "cut.trace")
with open(cut, "wb") as file:
    file.write(data[: len(data) * 2 // 3])
fact(told(cut)[1] == lines(cut) == told(book)[1][: len(told(cut)[1])], "one that is cut ends there")
together = []
with open(text, "rb") as file:
    as_lines = file.read()
for pair in (data + data, data[:-1] + data, as_lines + as_lines, as_lines + data):
    with open(cut, "wb") as file:
        file.write(pair)
    together.append(refused(cut, "another trace begins"))
fact(all(together), "two in one file are told from one", together)
with open(packed, "rb") as file:
    whole = file.read()
try:
    said = []
    for pair, words in ((whole[:-1], "cut off"), (whole[:9], "cut off"), (whole + whole, "behind its end"), (whole[:40] + b"x" * 9 + whole[40:], "damaged")):
        with open(cut, "wb") as file:
            file.write(pair)
        said.append(refused(cut, words))
    fact(all(said), "so is what is compressed, and cut off, damaged or put together", said)
except MissingPackage as error:
    skip("so is what is compressed, and cut off, damaged or put together", str(error))
wrong = []
with open(cut, "wb") as file:
    file.write(data[: len(data) // 2] + b"\xff" * 10)
for path in (cut, __file__):
    try:
        wrong.append(len(list(memshim.Trace(path))))
    except memshim.ReportError as error:
        wrong += [] if "\n" not in str(error) and path in str(error) else [error]
fact(not wrong, "what is damaged, or no trace, is said in one line", wrong)
