#!/usr/bin/env python3
"""The page as it is when it has just been loaded: a picture that is taken then shows it. And its own unpacking, against zlib's in all kinds
of blocks, where node is installed."""
import json
import os
import random
import shutil
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
import hooklib  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, skip  # noqa: E402

PAGE = os.path.join(os.environ["top_srcdir"], "src", "html", "page")
CASES = os.path.join(os.environ["top_builddir"], "tests", "cases")
UNPACK = """
const fs = require("fs");
eval(fs.readFileSync(process.argv[1], "utf8") + "; globalThis.Inflating = Inflating;");
const told = process.argv.slice(2).map((path) => {
  try { return Buffer.from(new Inflating(new Uint8Array(fs.readFileSync(path))).run()).toString("base64"); } catch (error) { return String(error); }
});
console.log(JSON.stringify(told));
"""
os.chdir(TMP)


def packed():
    """Texts packed in every way that zlib has: stored, with fixed and with own codes, several blocks, runs, nothing."""
    rows = random.Random(7)
    texts = [b"", b"a", b"a" * 100000, bytes(rows.randrange(256) for _ in range(70000)), b"".join(b"%d," % rows.randrange(1000) for _ in range(90000))]
    for text in texts:
        for level in (0, 1, 6, 9):
            for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY):
                packer = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
                half = len(text) // 2
                yield text, packer.compress(text[:half]) + packer.flush(zlib.Z_FULL_FLUSH) + packer.compress(text[half:]) + packer.flush()


def unpacking():
    if not shutil.which("node"):
        skip("unpacking", "no node")
        return
    wanted, paths = [], []
    for i, (text, block) in enumerate(packed()):
        wanted.append(text)
        paths.append("block%d" % i)
        with open(paths[-1], "wb") as file:
            file.write(block)
    with open("cut", "wb") as file:
        file.write(zlib.compress(wanted[-1])[:1000])
    done = subprocess.run(["node", "-e", UNPACK, os.path.join(PAGE, "inflate.js"), *paths, "cut"], capture_output=True, text=True, check=False)
    import base64
    told = json.loads(done.stdout) if done.returncode == 0 else [done.stderr]
    wrong = [path for path, text, one in zip(paths, wanted, told) if one != base64.b64encode(text).decode()]
    fact(len(told) == len(paths) + 1 and not wrong, "%d blocks of all kinds are unpacked as zlib does" % len(paths), wrong)
    fact("ends early" in told[-1], "one that is cut off is refused", told[-1:])


def at_once():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        skip("a page at once", "no chromium")
        return
    subprocess.run([MEMSHIM, "run", "--sim", "-q", "-f", "-o", "full.json", "--", os.path.join(CASES, "wanting"), "few"],
                   env=dict(os.environ, MEMSIM_MEMORY="2G"), capture_output=True, check=False)
    subprocess.run([MEMSHIM, "html", "-f", "-o", "page.html", "full.json"], check=False)
    done = subprocess.run([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=%s/chromium" % TMP, "--dump-dom",
                           "file://%s/page.html#findings" % os.path.realpath(TMP)], capture_output=True, text=True, timeout=120, check=False)
    page = done.stdout
    fact('data-ready="yes"' in page and "Unpacking the report." not in page.split("<script>")[0], "the page is there as soon as it is loaded", [page[:600]])
    findings = page[page.find('id="view-findings"'):]
    fact("where it was allocated" in findings and findings.count("grow_cache") > 1 and "main at " in findings, "a finding has its stack", [findings[:3000]])


unpacking()
if hooklib.WATCHED:
    skip("a page at once", "sanitizers watch")
else:
    at_once()
hooklib.plan(hooklib.number)
