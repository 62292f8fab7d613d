"""scripts/bench flows: how far a call goes through the sources. Of each of four flows: instructions, functions (those that were
compiled into others, too), files, and changes of file on the way.

Three are calls of tests/bench/flow: a hit, a free with work queued until its memory is used again, a hit of a program's own
pool. The fourth is what the command does from a killed process's ledger to the summary. Valgrind's callgrind counts each
instruction; counted is what lies in libmemshim.so, or in the command, and of the two hits what at least half of the calls do.
The file is that of the line that an instruction was compiled of. It changes between instructions of a function that follow each
other, and twice with a call of a function of another file. An argument is the directory of another build, whose library and
command are followed."""

import bisect
import os
import re
import shutil
import subprocess
import sys
import tempfile

# The functions of tests/bench/flow that are followed, and how many calls of them are one flow.
FLOWS = {"hit": (["flow_hit"], 20000), "queued": (["flow_queued_free", "flow_queued_again"], 1), "pool": (["flow_pool"], 20000)}


def counted(command, environment, toggles, binary):
    """What callgrind counts of one binary: [(address, times)] in order, and the calls from address to address."""
    with tempfile.TemporaryDirectory() as place:
        out = os.path.join(place, "out")
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-instr=yes", "--compress-pos=no",
                               "--compress-strings=no", *(f"--toggle-collect={toggle}" for toggle in toggles), *command],
                              env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-1000:]}")
        times, calls, here, there, call = {}, set(), None, None, None
        with open(out, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.rstrip("\n").partition("=")
                if key == "ob":
                    here = there = value
                elif key == "cob":
                    there = value
                elif key == "calls":
                    call = (int(value.split()[1], 16), there)
                    there = here
                elif line.startswith("0x"):
                    address, _, cost = line.split()
                    if here and os.path.realpath(here) == binary:
                        if call and os.path.realpath(call[1]) == binary:
                            calls.add((int(address, 16), call[0]))
                        elif not call:
                            times[int(address, 16)] = times.get(int(address, 16), 0) + int(cost)
                    call = None
        return times, calls


def sources(addresses, binary):
    """Of each address the innermost function and its file, and the function that it was compiled into."""
    told = subprocess.run(["addr2line", "-a", "-f", "-i", "-e", binary], input="\n".join(hex(address) for address in addresses),
                          capture_output=True, text=True, check=True).stdout.splitlines()
    found, at = {}, 0
    while at < len(told):
        address = int(told[at], 16)
        end = at + 1
        while end < len(told) and not told[end].startswith("0x"):
            end += 2
        file = os.path.normpath(told[at + 2].rsplit(":", 1)[0])
        found[address] = (told[at + 1], re.sub(r"^.*?(?=(src|hooks)/)", "", file), told[end - 2])
        at = end
    return found


def figures(command, environment, toggles, binary, per_flow):
    """Instructions, functions, files and changes of file of one flow."""
    binary = os.path.realpath(binary)
    times, calls = counted(command, environment, toggles, binary)
    often = {address: round(count / per_flow) for address, count in times.items() if 2 * count >= per_flow}
    order = sorted(often)
    if not order:
        sys.exit(f"nothing of {binary} was counted")
    named = sources(order, binary)
    changes = 0
    for before, after in zip(order, order[1:]):
        if named[before][2] == named[after][2] and named[before][1] != named[after][1]:
            changes += min(often[before], often[after])
    for address, target in calls:
        entry = order[min(bisect.bisect_left(order, target), len(order) - 1)]
        if address in often and named[address][1] != named[entry][1]:
            changes += 2 * often[address]
    functions = {named[address][:2] for address in order}
    return [sum(often.values()), len(functions), len({file for _, file in functions}), changes]


def bench_flows(options):
    """One row for each flow."""
    if not shutil.which("valgrind") or not shutil.which("addr2line"):
        sys.exit("flows needs valgrind and binutils (apt-get install valgrind binutils)")
    build = os.path.abspath(options.arguments[0] if options.arguments else options.build)
    library, command = os.path.join(build, "libmemshim.so"), os.path.join(build, "memshim")
    program = os.path.join(options.build, "tests/bench/flow")
    environment = {**options.environment, "MEMSHIM_REPORT": "none"}
    rows = [[name, *figures([program, name], {**environment, "LD_PRELOAD": library}, toggles, library, per_flow)]
            for name, (toggles, per_flow) in FLOWS.items()]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([program, "ledger"], check=False, env={**environment, "LD_PRELOAD": library, "MEMSHIM_DIR": place})
        ledger = next(name for name in os.listdir(place) if name.endswith(".ledger"))
        report = os.path.join(place, "report.json")
        parts = [figures([command, *words], environment, [], command, 1)
                 for words in (["recover", "-o", report, os.path.join(place, ledger)], ["summary", report])]
        rows.append(["ledger", *[sum(part) if at in (0, 3) else max(part) for at, part in enumerate(zip(*parts))]])
    return [dict(zip(("flow", "instructions", "functions", "files", "changes_of_file"), row)) for row in rows]
