"""A program for judge_test.py: what a client does, and one thing of it wrong, which its argument names. Wrong under memshim alone, but for what it claims. Needs no package.

judge_test.py says which of the runner's facts has to fail with each.
"""
import ctypes
import os
import sys

import mark

WRONG = sys.argv[1]
UNDER = "libmemshim.so" in os.environ.get("LD_PRELOAD", "")


def wrong(name):
    """Whether this is to be done wrong, here."""
    return WRONG == name and UNDER


def lines():
    """What is printed."""
    found = ["shape 4 4", "status 0", "bytes 4096"]
    if wrong("line"):
        found[1] = "status 2"
    elif wrong("missing line"):
        del found[1]
    elif wrong("further line"):
        found.append("bytes 0")
    elif wrong("order"):
        found.reverse()
    return found


def main():
    """All of it."""
    if wrong("blind"):
        os.environ["LD_PRELOAD"] = ":".join(path for path in os.environ["LD_PRELOAD"].split(":") if "libmemshim.so" not in path)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    if WRONG == "natively" and not UNDER:
        sys.exit(3)
    mark.here()
    driver, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
    driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096))
    mark.live("book", 4096 + (WRONG == "figure"))
    for _ in range(0 if wrong("leak") else 2 if wrong("double free") else 1):
        driver.cuMemFree_v2(pointer)
    if not wrong("claim"):
        mark.count("all", 1)
    mark.plant(512)
    mark.leaks("planted", 512 + (WRONG == "planted"))
    print("\n".join(lines()))
    print("note", "under memshim" if UNDER else "natively", flush=True)
    if wrong("status"):
        sys.exit(3)


main()
