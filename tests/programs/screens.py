#!/usr/bin/env python3
"""What `memshim summary` shows of three programs: the quickstart's, a training step in PyTorch (where scripts/test-clients has left it in the
cache) and a job of four ranks. Each is one screen, says what holds the memory and what to do next, and stands in docs/user/summary.md, the first in
the README too: SCREENS_DOCS=1 writes them anew. Where threads take turns, what the pool reserved varies; it is not compared."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, WATCHED, fact, plan, skip  # noqa: E402

TOP = os.path.realpath(os.environ["top_srcdir"])
# Tests have a cache of their own, which is not the one of scripts/test-clients.
CLIENTS = os.path.join(os.environ["TEST_CACHE"], "clients")
PAGES = {"training": ("README.md", "docs/user/summary.md"), "ranks": ("docs/user/summary.md",), "torch": ("docs/user/summary.md",)}
SCREEN = 24  # lines of a terminal


def play(name, words, **more):
    """The reports of a program, in the order of their ranks."""
    os.makedirs(os.path.join(TMP, name))
    done = subprocess.run([MEMSHIM, "run", "--sim", "-q", "-o", os.path.join(TMP, name, "memshim%R.json"), "--", *words], text=True,
                          env=dict(os.environ, MEMSHIM_LOG="none", **more), capture_output=True, timeout=300, check=False, cwd=TOP)
    found = sorted(glob.glob(os.path.join(TMP, name, "*.json")))
    if done.returncode or not found:
        print("# %s: %d, %s" % (name, done.returncode, done.stdout + done.stderr))
    return found


def screen(name, reports):
    """As it stands in the pages: the same machine, process and times always."""
    done = subprocess.run([MEMSHIM, "summary", *reports], text=True, capture_output=True, check=False, cwd=TOP)
    text = done.stdout.replace(os.path.join(TMP, name) + "/", "").replace(BUILD + "/", "build/").replace(TOP + "/", "")
    text = text.replace(os.path.relpath(BUILD, TOP) + "/", "build/").replace(CLIENTS + "/", "")
    text = re.sub(r"process \d+ on \S+?(,| )", r"process 4711 on node\1", text)
    text = re.sub(r"(rank \d+) on \S+:", r"\1 on node:", text)
    text = re.sub(r"(?<=, )[\d.]+ (ns|us|ms|s)\b", "1.0 s", text)
    text = re.sub(r"torch-\w+/bin/", "", text)
    return text if done.returncode == 0 else "memshim summary failed: " + done.stderr


def shape(text):
    """Without what varies: also what several threads held at the peak beside the first line."""
    kept, held = [], 0
    for line in map(str.strip, text.splitlines()):
        held = held + 1 if held or line.startswith("Peak") else 0
        held = 0 if line.startswith("Leak") else held
        if held > 2 or " shrink when memory is short" in line:
            continue
        line = re.sub(r"[\d.]+ [KMG]?i?B (reserved)", r"N \1", line)
        line = re.sub(r"[\d.]+ [KMG]?i?B", "N", line) if re.match("Waste|Found|Most", line) else line
        line = line.replace("at most ", "") if line.startswith("Most") else line
        line = re.sub(r"\d[\d.]*( [mun]?s$)?", "N", line) if line.startswith("Calls") else line
        kept.append(re.sub(r"inactive .*|freed and .*|granted .*", "somehow", line) if line.startswith("Waste") else line)
    return kept


def marked(page, name):
    return re.search(r"<!-- screen %s -->\n\n(.*?)\n\n<!-- screen end -->" % name, page, re.S)


def check_pages(name, text):
    block = "\n".join(("    " + line).rstrip() for line in text.splitlines())
    for path in PAGES[name]:
        path = os.path.join(TOP, path)
        with open(path, encoding="utf-8") as file:
            page = file.read()
        there = marked(page, name)
        if os.environ.get("SCREENS_DOCS") and there:
            page = page[: there.start(1)] + block + page[there.end(1):]
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
            there = marked(page, name)
        fact(there and shape(there[1]) == shape(block), "%s: %s has it (SCREENS_DOCS=1 writes it)" % (name, os.path.basename(path)), text.splitlines())


def check(name, text, wanted):
    lines = text.splitlines()
    fact(len(lines) <= SCREEN and max(map(len, lines)) <= 160, "%s: one screen" % name, lines)
    silent = [word for word in wanted if not re.search(word, text, re.M)]
    fact(not silent, "%s: says what holds the memory, what leaks, and what to do next" % name, silent + lines)
    check_pages(name, text)


def torch():
    """A Python that has PyTorch, or None."""
    for place in glob.glob(os.path.join(CLIENTS, "torch-*")):
        if glob.glob(os.path.join(place, "lib*", "python*", "site-packages", "torch")) and os.path.exists(os.path.join(place, "bin", "python3")):
            return os.path.join(place, "bin", "python3")
    return None


plan(10)
if WATCHED or not os.path.exists(os.path.join(BUILD, "tests", "programs", "ranks")):
    for _ in range(10):
        skip("screens", "sanitizers watch")
    sys.exit(0)
check("training", screen("training", play("training", [os.path.join(os.path.relpath(BUILD, TOP), "tests", "programs", "training")])),
      [r"^Peak +115\.0 MiB allocated on cuda 0", r"^ +48\.0 MiB +cudaMalloc, in state_new at tests/programs/training\.c:\d+ <- train at tests/programs/training\.c:\d+( \[inlined\])?$",
       r"^Leak +4\.1 MiB never freed, in 8 blocks: 256\.0 KiB lost, 3\.9 MiB held to the end$",
       r"^ +256\.0 KiB +cudaMallocAsync, in keep_logits at tests/programs/training\.c:\d+$", r"^Next +memshim leaks "])
check("ranks", screen("ranks", play("ranks", [os.path.join(os.path.relpath(BUILD, TOP), "tests", "programs", "ranks")], MEMSIM_DEVICES="4", MEMSIM_CONTEXT="300M")),
      [r"^\d figures stand out\n  rank 0 on node: ", r"^rank 3 ", r"^4 processes: peak .*rank 0\)", r"^ +192\.0 MiB +cudaMalloc, in load_weights at",
       r"^Most  cuda 0: 8\.00 GiB = \S+ GiB free \+ \S+ MiB yours \(\S+ MiB allocated \+ .* cached \+ at most 300\.0 MiB contexts\) \+ 0 B neighbours \+ .* unaccounted$", r"in evaluate at tests/programs/ranks\.c:\d+", r"^Next +memshim "])
python = torch()
if not python:
    for what in ("one screen", "says what holds the memory", "the page has it"):
        skip("PyTorch: " + what, "scripts/test-clients torch has not fetched it")
else:
    check("torch", screen("torch", play("torch", [python, "-B", "tests/programs/torch_step.py"])),
          [r"^Peak +[0-9.]+ MiB allocated by tensors, [0-9.]+ MiB reserved by PyTorch, of 8\.00 GiB on cuda 0$", r"^ +64\.0 MiB +PyTorch, optimizer state, in step \(tests/programs/torch_step\.py:\d+\)",
           r"PyTorch, gradients, in step \(tests/programs/torch_step\.py:\d+\) \(inferred\)", r"^ +[0-9.]+ MiB cached by PyTorch at the end", r"^Blocks +[0-9.]+ MiB allocated on cuda 0", r"^Next +memshim peak "])
shutil.rmtree(TMP, ignore_errors=True)
os.makedirs(TMP, exist_ok=True)
