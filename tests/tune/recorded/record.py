#!/usr/bin/env python3
"""Records what clients ask for, and what PyTorch's allocator reserves for it with each setting: record.py PYTHON NAME....

PYTHON has the client's packages. Writes NAME.trace.xz, as lines, and of programs of PyTorch reserved.json, in this folder: each setting that
memshim tune tries is run for real, on the simulated device, and the program says the most that was reserved."""

import json
import lzma
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import told  # noqa: E402  pylint: disable=wrong-import-position

PROGRAMS = {"gpt": ["12", "8"], "vision": ["12", "16"], "decode": ["6", "12"], "fields": ["40"], "batches": ["40"]}
PYTORCH = ("gpt", "vision", "decode")
RESERVED = os.path.join(HERE, "reserved.json")


def run(python, name, *options, **more):
    """What the program prints on the simulated device."""
    done = subprocess.run([told.BUILD + "/memshim", "run", "-q", "-f", "--sim", "-o", "none", *options, "--", python, os.path.join(HERE, name + ".py"), *PROGRAMS[name]],
                          env=told.environment(MEMSIM_MEMORY="8G", **more), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def record(python, name):
    """The trace as lines."""
    trace = os.path.join(HERE, name + ".trace")
    run(python, name, "--trace", trace)
    lines = subprocess.run([told.BUILD + "/memshim", "trace", "--text", trace], stdout=subprocess.PIPE, check=True).stdout
    with lzma.open(trace + ".xz", "wb", preset=9 | lzma.PRESET_EXTREME) as file:
        file.write(lines)
    return trace


def main():
    """Each in turn."""
    for name in sys.argv[2:]:
        trace = record(sys.argv[1], name)
        if name in PYTORCH:
            with open(RESERVED, encoding="ascii") as file:
                reserved = json.load(file)
            reserved[name] = {part["settings"]: int(run(sys.argv[1], name, "--mode", "off", PYTORCH_ALLOC_CONF=part["settings"]))
                              for part in told.tune(trace)["pytorch"]}
            with open(RESERVED, "w", encoding="ascii") as file:
                json.dump(reserved, file, indent=1)
                file.write("\n")
        os.unlink(trace)


if __name__ == "__main__":
    main()
