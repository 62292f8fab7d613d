#!/usr/bin/env python3
"""Sizes, offsets and values of our declarations equal the vendor's.

One list of checks is made from our own headers: every structure, every member, every enumerator and every constant. Two
translation units expand the same list, one over our headers and one over the vendor's, and a third program compares what
they hold. A name that the vendor does not have stops the compiler. Run by the harness; skipped where there is no toolkit.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import vendor  # noqa: E402

TMP = os.environ["TEST_TMP"]
FLAGS = ["-std=gnu11", "-w", "-D_GNU_SOURCE", "-I" + vendor.TOP, "-I" + os.path.join(vendor.TOP, "src"), "-I" + TMP]
TOKEN = re.compile(r'[A-Za-z_]\w*|0[xX][0-9a-fA-F]+\w*|\d+\w*|"[^"]*"|\'[^\']*\'|[{}()\[\];,=*&|<>+\-:.~!?/%^]')
PARTS = {
    "driver": ("cuda_driver.h", "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n", (400, 900, 40)),
    "runtime": ("cuda_runtime.h", "#include <cuda_runtime_api.h>\n", (40, 250, 10)),
}
if vendor.has_nccl():
    PARTS["nccl"] = ("nccl.h", "#include <nccl.h>\n", (30, 60, 3))
# Differences that are meant: CUDA 12's layouts have no counterpart in the headers of CUDA 13.
OURS_ALONE = re.compile(r"_12$")
FILLER = re.compile(r"_$")  # a member of ours that stands for those left out


def close(tokens, start):
    """The index of the bracket that closes the one at start."""
    depth = 0
    for i in range(start, len(tokens)):
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(tokens[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced")


def members(tokens, prefix=""):
    """The paths of all members between a structure's braces; those of unnamed ones are their parent's."""
    paths, statement, i = [], [], 0
    while i < len(tokens):
        if tokens[i] == "{":
            end = close(tokens, i)
            statement.append(tokens[i + 1:end])
            i = end + 1
            continue
        if tokens[i] == ";":
            paths += declared(statement, prefix)
            statement = []
        else:
            statement.append(tokens[i])
        i += 1
    return paths


def declared(statement, prefix):
    body = next((part for part in statement if isinstance(part, list)), None)
    if body is not None and "enum" in statement:
        body = None
    names = declarators([part for part in statement if not isinstance(part, list)])
    has_body = any(isinstance(part, list) for part in statement)
    if has_body:
        after = statement[[isinstance(part, list) for part in statement].index(True) + 1:]
        names = [t for t in after if re.match(r"[A-Za-z_]", t)]
    paths = [prefix + name for name in names]
    if body is None:
        return paths
    array = "[" in statement
    for name in names or [""]:
        paths += members(body, prefix + (name + ("[0]" if array else "") + "." if name else ""))
    return paths


def declarators(tokens):
    """The names that a plain declaration declares."""
    text = " ".join(tokens)
    function = re.search(r"\(\s*\*\s*(\w+)\s*\)", text)
    if function:
        return [function[1]]
    text = re.sub(r"\[[^\]]*\]", "", text)
    return [m for part in text.split(",") for m in re.findall(r"(\w+)\s*$", part.strip())]


def parse(text):
    """(structures, members of each, enumerators) of a preprocessed header."""
    tokens = TOKEN.findall(re.sub(r"^#.*$", "", text, flags=re.M))
    layouts, enumerators, i = {}, [], 0
    while i < len(tokens):
        kind = tokens[i]
        if kind not in ("struct", "union", "enum"):
            i += 1
            continue
        tag = tokens[i + 1] if re.match(r"\w", tokens[i + 1]) else None
        start = i + (2 if tag else 1)
        if start >= len(tokens) or tokens[start] != "{":
            i += 1
            continue
        end = close(tokens, start)
        body = tokens[start + 1:end]
        if kind == "enum":
            enumerators += re.findall(r"(?:^|,) (\w+)", " ".join(body))
        else:
            alias = tokens[end + 1] if i and tokens[i - 1] == "typedef" and tokens[end + 1] != ";" else None
            name = alias or ("%s %s" % (kind, tag) if tag else None)
            if name:
                layouts[name] = [path for path in members(body) if not FILLER.search(path)]
            enumerators += [m for part in re.findall(r"enum (?:\w+ )?{([^}]*)}", " ".join(body))
                            for m in re.findall(r"(?:^|,)\s*(\w+)", part)]
        i = end + 1
    return layouts, enumerators


def constants(header):
    """The object-like macros of one of our headers that stand for a number."""
    text = open(header, encoding="utf-8").read()
    return re.findall(r"^#define ((?:CU|cuda|NCCL_)\w+)\s+\S", text, re.M)


def checks(header):
    path = os.path.join(vendor.TOP, "src", "vendor", "abi", header)
    text = vendor.preprocess('#include "vendor/abi/%s"\n' % header, "-I" + os.path.join(vendor.TOP, "src"))
    layouts, enumerators = parse(text)
    if header == "cuda_runtime.h":  # what it takes from the driver's header is checked there
        below = vendor.preprocess('#include "vendor/abi/cuda_driver.h"\n', "-I" + os.path.join(vendor.TOP, "src"))
        below_layouts, below_enumerators = parse(below)
        layouts = {name: paths for name, paths in layouts.items() if name not in below_layouts}
        enumerators = [name for name in enumerators if name not in set(below_enumerators)]
    lines = {"structures": 0, "enumerators": 0, "constants": 0}
    out = []
    for name, paths in sorted(layouts.items()):
        if OURS_ALONE.search(name) or not re.search(r"\b(CU|cu|nccl)", name):
            continue
        lines["structures"] += 1
        out.append("CHECK(\"sizeof %s\", sizeof(%s))" % (name, name))
        out += ["CHECK(\"%s.%s\", offsetof(%s, %s))" % (name, p, name, p) for p in paths]
        out += ["CHECK(\"sizeof %s.%s\", sizeof(((%s *)0)->%s))" % (name, p, name, p) for p in paths]
    for name in enumerators:
        lines["enumerators"] += 1
        out.append("CHECK(\"%s\", %s)" % (name, name))
    for name in constants(path):
        lines["constants"] += 1
        out.append("CHECK(\"%s\", (unsigned long long)(uintptr_t)(%s))" % (name, name))
    return out, lines


UNIT = """
#include <stddef.h>
#include <stdint.h>
%s
struct check { const char *name; unsigned long long value; };
extern const struct check %s[];
const struct check %s[] = {
#define CHECK(name, value) {name, (unsigned long long)(value)},
#include "checks-%s.inc"
    {0, 0}};
"""
COMPARE = """
#include <stdio.h>
struct check { const char *name; unsigned long long value; };
extern const struct check ours[], theirs[];
int main(void)
{
    int bad = 0, n = 0;
    for (; ours[n].name; n++)
        if (ours[n].value != theirs[n].value && ++bad)
            printf("%s: ours %llu, the vendor's %llu\\n", ours[n].name, ours[n].value, theirs[n].value);
    return bad != 0 || n == 0;
}
"""


def unit(part, which, include, *flags):
    """Compile one side; returns the object's path and what the compiler says."""
    source = os.path.join(TMP, "%s-%s.c" % (part, which))
    with open(source, "w", encoding="utf-8") as file:
        file.write(UNIT % (include, which, which, part))
    run = subprocess.run(vendor.CC + FLAGS + list(flags) + ["-c", source, "-o", source[:-1] + "o"], capture_output=True,
                         text=True, check=False)
    return source[:-1] + "o", run.returncode == 0, [e for e in run.stderr.splitlines() if "error" in e][:30]


def main():
    vendor.skip_without_toolkit()
    tap = vendor.Tap(4 * len(PARTS))
    for part, (header, theirs, least) in PARTS.items():
        found, lines = checks(header)
        with open(os.path.join(TMP, "checks-%s.inc" % part), "w", encoding="utf-8") as file:
            file.write("\n".join(found) + "\n")
        tap.fact(all(got >= want for got, want in zip((lines["enumerators"], len(found), lines["structures"]), least)),
                 "%s: %d checks, of %d structures, %d enumerators, %d constants" %
                 (part, len(found), lines["structures"], lines["enumerators"], lines["constants"]))
        our_object, passed, said = unit(part, "ours", '#include "vendor/abi/%s"' % header)
        tap.fact(passed, "%s: the list compiles over our header" % part, said)
        their_object, passed, said = unit(part, "theirs", theirs, "-I" + os.path.join(vendor.CUDA, "include"))
        tap.fact(passed, "%s: the list compiles over the vendor's" % part, said)
        compare = os.path.join(TMP, "compare.c")
        with open(compare, "w", encoding="utf-8") as file:
            file.write(COMPARE)
        program = os.path.join(TMP, "compare-" + part)
        built = subprocess.run(vendor.CC + [compare, our_object, their_object, "-o", program], capture_output=True,
                               text=True, check=False)
        run = subprocess.run([program], capture_output=True, text=True, check=False) if built.returncode == 0 else built
        tap.fact(run.returncode == 0, "%s: everything equal" % part, (run.stdout + run.stderr).splitlines()[:40])


main()
