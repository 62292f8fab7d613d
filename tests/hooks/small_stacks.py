"""How much of a program's stack memshim takes of its own, for each kind of call: measured by paint, against the same calls natively.

Symbols are bound at the start, in both: the loader's frame that binds one in its first call holds the vector registers, 2.5 KiB
with AVX-512 and less without, and is taken by whoever calls first.

4 KiB at most for each, and every call within a thread of 16 KiB, where its neighbour's memory begins right below. The table of
docs/internals/testing.md is what TEST_STACKS=table prints."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
import hooklib  # noqa: E402

OWN_BYTES = 4096      # docs/internals/architecture.md, "Small stacks"
# What happens once in a process or at its end: the record is made, or written out.
ONCE_BYTES = {"first": 4096, "exit": 6144, "child": 8192, "signal": 4096}


def measured(what, environment):
    """name -> (bytes, within, status) of one run."""
    program = ["small_stacks_others"] if what == "others" else ["small_stacks", what]
    done = subprocess.run([os.path.join(hooklib.HERE, program[0])] + program[1:], env=environment, capture_output=True,
                          text=True, timeout=120)
    rows = {}
    for line in done.stdout.splitlines():
        words = line.split()
        rows[words[0]] = (int(words[1]), words[2], words[3:])
    if done.returncode != 0 or not rows:
        hooklib.fact(False, "%s ran" % what, [done.returncode, done.stderr])
    return rows


def main():
    if os.sysconf("SC_THREAD_STACK_MIN") > 1 << 16:
        print("1..0 # SKIP no thread may have so small a stack on this machine")
        return
    if os.environ["TEST_SANITIZE"]:
        print("1..0 # SKIP a sanitizer's frames are larger")
        return
    print("1..6")
    plain = dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"], LD_BIND_NOW="1")
    shim = dict(plain, LD_PRELOAD=os.environ["TEST_LIB"], MEMSHIM_REPORT=os.path.join(hooklib.TMP, "report.json"))
    table = []
    for what in ("calls", "others", "first", "signal", "exit", "child"):
        natively, now = measured(what, plain), measured(what, shim)
        wrong = []
        for name, (size, place, status) in now.items():
            own = size - natively[name][0]
            table.append((name, natively[name][0], size, own))
            if own > ONCE_BYTES.get(name, OWN_BYTES) or place != "within" or status != natively[name][2]:
                wrong.append("%s: %d bytes, %d of them memshim's, %s %s" % (name, size, own, place, status))
        hooklib.fact(not wrong and now.keys() == natively.keys(), "%s: memshim's own part is small" % what, wrong)
    if os.environ.get("TEST_STACKS") == "table":
        for row in table:
            print("# | %s | %d | %d | %d |" % row)


main()
