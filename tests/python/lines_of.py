"""Every code object of the standard library of the interpreter that runs this: the lines that memshim's decoder tells
of every instruction are those that the interpreter itself tells. Runs under Python 3.9 to 3.15, run by lines.py.

lines_of.py DECODER MODULES: says how many code objects and instructions were compared, and exits with 1 at the first
difference."""

import array
import dis
import os
import struct
import subprocess
import sys
import sysconfig

# Tables of all forms: no lines at all, lines that go back, far jumps, columns beyond what the short forms hold.
ODD = """
def far(a):
    return (a +
""" + "\n" * 3000 + """            a(lambda: [b
                for b in a]))
def wide(%s): return [%s]
@far
@far
class Decorated:
    x = 1 if far else 2; y = x
    def f(self):
        with self as a, self as b:
            try:
                return (yield a)
            finally:
                del b
""" % (", ".join("argument_%d" % i for i in range(200)), ", ".join("argument_%d" % i for i in range(200)))


def sources(limit):
    """The text of the first modules of the library, by name."""
    library = sysconfig.get_paths()["stdlib"]
    found = 0
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(f for f in folders if f not in ("test", "tests", "site-packages", "dist-packages", "idlelib"))
        for name in sorted(names):
            if name.endswith(".py") and found < limit:
                found += 1
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    yield path, file.read()


def codes_of(code):
    """A code object and all within it."""
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes_of(constant)


def truth(code):
    """The line of each instruction by the interpreter; 0 where it has none."""
    lines = [0] * (len(code.co_code) // 2)
    if sys.version_info < (3, 10):
        starts = list(dis.findlinestarts(code)) + [(len(code.co_code), 0)]
        for (start, line), (end, _) in zip(starts, starts[1:]):
            lines[start // 2:end // 2] = [line] * ((end - start) // 2)
        return lines
    for start, end, line in code.co_lines():
        lines[start // 2:end // 2] = [line or 0] * ((end - start) // 2)
    return lines


def main():
    """Compare all of them at once."""
    version = sys.version_info[0] << 8 | sys.version_info[1]
    codes = []
    for path, text in [("odd", ODD)] + list(sources(int(sys.argv[2]))):
        try:
            codes.extend(codes_of(compile(text, path, "exec", dont_inherit=True)))
        except (SyntaxError, ValueError):
            continue  # the library has files that are meant to fail
    asked = bytearray()
    for code in codes:
        table = code.co_lnotab if sys.version_info < (3, 10) else code.co_linetable
        asked += struct.pack("=4I", version, code.co_firstlineno, len(table), len(code.co_code)) + table
    said = array.array("i")
    said.frombytes(subprocess.run([sys.argv[1]], input=bytes(asked), stdout=subprocess.PIPE, check=True).stdout)
    at = 0
    for code in codes:
        want = truth(code)
        got = said[at:at + len(want)].tolist()
        at += len(want)
        if got != want:
            place = [g == w for g, w in zip(got, want)].index(False) if len(got) == len(want) else -1
            sys.exit("%s in %s: instruction %d is of line %s, not %s" % (
                code.co_name, code.co_filename, place, want[place], got[place:place + 1]))
    print("%d functions, %d instructions" % (len(codes), at))


main()
