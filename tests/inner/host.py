#!/usr/bin/env python3
"""Tensors of the host, by the stand-in of PyTorch: recorded where they are asked for, on no device, and apart from what is the device's."""
import subprocess
import sys

sys.dont_write_bytecode = True
from innerlib import play, read, screen  # noqa: E402
from hooklib import MEMSHIM, fact, native_environment, plan  # noqa: E402


def check_host(wanted):
    """The report, and what of the device's differs from the program's own book."""
    done, path = play("host", MEMSHIM_HOST_TENSORS=wanted)
    report, lines = read(path), done.stdout.splitlines()
    host = [(heap["live_bytes"], heap["live_count"]) for heap in report["heaps"] if heap["name"] == "PyTorch on the host"]
    told = [tuple(map(int, lines[0].split()))] if wanted == "on" else []
    live, count, peak = map(int, lines[1].split()[:3])
    device = report["inner_devices"][0]
    fact(done.returncode == 0 and host == told, "tensors of the host, %s: they are those of the program's book" % wanted, [host, told, lines, done.stderr])
    fact([device["live_bytes"], device["live_count"], device["peak_live_bytes"]] == [live, count, peak], "%s: those of the device are apart" % wanted, [device, lines])
    fact(lines[1].endswith("all"), "%s: PyTorch's own functions heard all of it" % wanted, lines)
    return path


plan(7)
check_host("off")
report_path = check_host("on")
validated = subprocess.run([MEMSHIM, "validate", report_path], env=native_environment(), text=True, capture_output=True, check=False)
owners, folded = screen("owners", report_path), screen("export", report_path, "--format", "folded")
fact(validated.returncode == 0 and all("no device" in said and "device -1" not in said and "cuda -1" not in said for said in (owners, folded)),
     "the report is sound, and screens say that they are on no device", [validated.stdout, owners, folded])
