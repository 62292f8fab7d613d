#!/usr/bin/env python3
"""The listings of docs/user/questions/: each is what its command prints, of a program that the page runs itself. QUESTIONS_DOCS=1 writes them
anew. Figures of the program are compared as they are; those that depend on when the device was done are not."""
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, WATCHED, fact, plan, skip  # noqa: E402

TOP = os.path.realpath(os.environ["top_srcdir"])
MADE = re.compile(r"<!-- made: (.*?) -->\n\n(.*?)\n?<!-- made end -->", re.S)
# Where scripts/test-clients leaves what it fetched; tests have a cache of their own, which that is not.
CLIENTS = os.path.join(os.environ["TEST_CACHE"], "clients")
# What a page must end at: a line of the program that its listings name.
ENDS = {"what-holds-my-memory": "load_weights", "what-leaks": "open_guest", "why-did-it-run-out": "open_session", "what-is-wasted": "open_guest",
        "what-changed": "open_session", "which-tensor": "evaluate", "which-settings": "MEMSHIM_BACKING"}
PYTORCH = ("which-tensor",)  # pages whose program needs it


def printed(command, place):
    """What a command prints, with the same machine, process, addresses and times always."""
    done = subprocess.run(["sh", "-c", command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=place, timeout=120, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, PATH=place + ":" + os.environ["PATH"], MEMSHIM_LOG="none", NO_COLOR="1", COLUMNS="80"))
    text = done.stdout.replace(place + "/", "").replace(TOP + "/", "").replace(os.path.relpath(TOP, place) + "/", "")
    text = re.sub(r"process \d+ on \S+?(,| )", r"process 4711 on node\1", text)
    text = re.sub(r", process \d+$", ", process 4711", text, flags=re.M)
    text = re.sub(r"^(time saved, about).*", r"\1     1.0 ms     1.0 ms", text, flags=re.M)
    text = re.sub(r"(, about )[\d.]+ (ns|us|ms|s)$", r"\g<1>1.0 ms", text, flags=re.M)
    text = re.sub(r"(, |after )[\d.]+ (ns|us|ms|s)\b", r"\g<1>1.0 s", text)
    for number, address in enumerate(sorted(set(re.findall(r"0x[0-9a-f]{12}", text)))):
        text = text.replace(address, "0x7f%010x" % ((number + 1) << 24))
    return text


def block(command, text):
    """As the page has it."""
    lines = ["    " + command] + ["    " + line for line in text.splitlines()]
    return "\n".join(line.rstrip() for line in lines)


def shape(command, text):
    """Without what depends on time: of the pool all figures, else those of what was reserved."""
    if " frag " in command:
        # The segments, and which of them strand how much.
        text = "\n".join(line for line in text.splitlines() if not re.match(r"\s+0x", line))
        return re.sub(r"[\d.]+( [KMG]?i?B|%)?", "N", re.sub(r"#+|(?<=segment)s", "", text)).split()
    if "in use on the device" in text:  # the equation: what the pool had just then
        terms = text.index("in use on the device")
        text = text[:terms] + re.sub(r" *[\d.]+ [KMG]?i?B", " N", re.sub(r" +[\d.]+ [KMG]?i?B +(inactive|pending).*\n?", "", text[terms:]))
    # When the driver was asked: at another moment each time.
    text = re.sub(r"^( +Most  \S+ \d+:) .*", lambda line: line[1] + re.sub(r"at most |[\d.]+ [KMG]?i?B", "", line[0][len(line[1]):]), text, flags=re.M)
    # Whether it grew is told by stretches of time, of which a quick machine has few, and a busy one many: then there is a finding more, which summary names next.
    text = re.sub(r"^ +Found .*\n( +to do: .*\n)?|^ +Next  memshim (leaks|findings) .*\n?|^ +\d+ findings?, errors first.*\n"
                  r"|^ +warning, growth .* freed only in the end\n( +\S.*\n)*\n", "", text, flags=re.M)
    text = re.sub(r"\b(growing|lost|held to the end),", "leak,", text)
    text = re.sub(r"(: |, )([\d.]+ [KMG]?i?B )?(growing|lost|held to the end)\b", "", text)
    text = re.sub(r"warning, (growth|leak) on (device \d+) \(\w+\): (.* in \d+ blocks?).*\n +to do: .*", r"warning on \2: \3", text)
    text = re.sub(r"[\d.]+ [KMG]?i?B (reserved)|(largest free piece) [\d.]+ [KMG]?i?B", "N", text)
    return [line for line in text.splitlines() if not line.strip().startswith(("Waste", "to do: synchronise", "reserved ", "Calls ", "vendor calls"))
            and " of it shrink when" not in line]


def pytorch():
    """A Python that has PyTorch, which scripts/test-clients has fetched; or None."""
    for place in glob.glob(os.path.join(CLIENTS, "torch-*")):
        if glob.glob(os.path.join(place, "lib*", "python*", "site-packages", "torch")) and os.path.exists(os.path.join(place, "bin", "python3")):
            return os.path.join(place, "bin", "python3")
    return None


def check(path):
    name = os.path.basename(path)[:-3]
    place = os.path.join(TMP, name)
    os.makedirs(place)
    os.symlink(MEMSHIM, os.path.join(place, "memshim"))
    for program in ("service", "shapes"):
        os.symlink(os.path.join(BUILD, "tests", "programs", program), os.path.join(place, program))
    if name in PYTORCH:
        os.symlink(os.path.join(TOP, "tests", "programs", "torch_evaluate.py"), os.path.join(place, "train.py"))
        with open(os.path.join(place, "python3"), "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
            file.write('#!/bin/sh\nexec "%s" "$@"\n' % pytorch())
    with open(path, encoding="utf-8") as file:
        page = file.read()
    wrong, all_texts = [], ""

    def make(found):
        nonlocal all_texts
        text = printed(found[1], place)
        made = block(found[1], text)
        all_texts += text
        if shape(found[1], made) != shape(found[1], found[2].rstrip("\n")):
            wrong.extend([found[1], "prints:", *made.splitlines(), "the page has:", *found[2].splitlines()])
        return "<!-- made: %s -->\n\n%s\n\n<!-- made end -->" % (found[1], made)

    written = MADE.sub(make, page)
    if os.environ.get("QUESTIONS_DOCS"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(written)
        wrong = []
    fact(not wrong and MADE.search(page), name + ": its listings are what the commands print (QUESTIONS_DOCS=1 writes them)", wrong)
    last = page[page.rfind("**The line**"):]
    fact(ENDS[name] in last and re.search(r"\b%s( at tests/programs/service\.c:\d+| \(train\.py:\d+|=\w+)" % ENDS[name], all_texts), name + ": ends at a line that its listings name", [last])
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", page)
    with open(os.path.join(TOP, "tests", "html", "browser.py"), encoding="utf-8") as file:
        shots = file.read()
    fact(all(os.path.exists(os.path.join(os.path.dirname(path), picture)) and '"%s"' % os.path.basename(picture)[5:-4] in shots for picture in pictures),
         name + ": its pictures are there, and made by scripts/test-browser", pictures)


plan(3 * len(ENDS))
for page_path in sorted(glob.glob(os.path.join(TOP, "docs", "user", "questions", "w*.md"))):
    if os.path.basename(page_path)[:-3] not in ENDS:
        continue  # a page with a test of its own
    needs = os.path.basename(page_path)[:-3] in PYTORCH and not pytorch()
    if WATCHED or needs:
        for _ in range(3):
            skip(page_path, "scripts/test-clients torch has not fetched it" if needs else "sanitizers watch")
    else:
        check(page_path)
