#!/usr/bin/env python3
"""memshim top over three programs that run (steps.c), one of which is killed meanwhile: what it says each time, in lines, in JSON and on the screen that tmux shows, is
what their own books say. TEST_SECONDS=60 watches for a minute. Names that mean harm reach no terminal."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("ledger", "hooks")]
from hooklib import MEMSHIM, TMP, fact, plan, skip  # noqa: E402
from watched import Watched, until  # noqa: E402

SECONDS = int(os.environ.get("TEST_SECONDS", "3"))
MIB = 1 << 20
SIZE = re.compile(r"([\d.]+) (B|KiB|MiB|GiB)")
HARM = "a\x1b]0;owned\x07b\x9bc\u202ed\ne"
TMUX = ["tmux", "-L", "memshim-test-%d" % os.getpid(), "-f", "/dev/null"]


def told(words):
    """(live, peak) in a line of top's."""
    sizes = [float(number) * {"B": 1 / MIB, "KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[unit] for number, unit in SIZE.findall(words)]
    return sizes[0], sizes[1]


def in_mib(live, peak, _):
    """The same of a book."""
    return live / MIB, peak / MIB


def by_json(programs):
    """What is wrong in lines of JSON; one program is killed at half of them."""
    wrong, told_of, begun, killed = [], [], time.time_ns(), 0
    with subprocess.Popen([MEMSHIM, "top", "--json", "-n", str(SECONDS + 1)], stdout=subprocess.PIPE, text=True) as top:
        for number, line in enumerate(top.stdout):
            look = json.loads(line)
            rows = {row["pid"]: row for row in look["rows"]}
            for program in programs:
                row = rows.get(program.pid)
                if row is None:
                    wrong += [] if killed else ["look %d: %d is not shown" % (number, program.pid)]
                elif program is programs[0] and killed and begun > killed:
                    wrong.append("look %d: %d was killed" % (number, program.pid))
                else:
                    told_of.append((program, (row["live_bytes"], row["peak_bytes"], row["allocated_count"]), begun, look["t_unix_ns"]))
            begun = look["t_unix_ns"]
            if number == (SECONDS + 1) // 2 and not killed:
                programs[0].kill()
                killed = time.time_ns()
    wrong += ["%d: %s, in the book %s" % (program.pid, figures, program.states(*times)) for program, figures, *times in told_of if not program.says(figures, *times)]
    return wrong + ([] if top.returncode == 0 and number == SECONDS else ["ended with %s after %d" % (top.returncode, number)])


def by_lines(programs):
    """What is wrong in lines for people, wide enough for every column."""
    begun = time.time_ns()
    done = subprocess.run([MEMSHIM, "top", "-n", "2", "--sort", "pid"], env=dict(os.environ, COLUMNS="200"), capture_output=True, text=True, timeout=100, check=False)
    ended, of, lines = time.time_ns(), {program.pid: program for program in programs}, done.stdout.splitlines()
    lines = [line for line in lines if " GPU-" not in line] # what processes share
    shown = [int(line.split()[1]) for line in lines[1:]]
    wrong = [line for line in lines[1:] if not of[int(line.split()[1])].says(told(line), begun, ended, in_mib) or "steps %s" % TMP not in line]
    return wrong + ([] if shown == 2 * sorted(of) and done.returncode == 0 and not done.stderr else [done.stdout, done.stderr])


def screen():
    """The lines that tmux shows now."""
    return subprocess.run([*TMUX, "capture-pane", "-p"], capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()


def by_screen(programs):
    """What is wrong on the screen, until as many different ones were shown as there are seconds; one program is killed at half of them."""
    start = time.time_ns()
    wrong, told_of, shown, different, killed = [], [], None, 0, 0
    seen, begun = start, [start, start]  # begun: before top looked for the last picture, and for the one that comes next
    subprocess.run([*TMUX, "new-session", "-d", "-x", "130", "-y", "10", MEMSHIM, "top"], check=True, timeout=60)
    while different < SECONDS:
        time.sleep(0.2)
        taken, lines = time.time_ns(), screen()
        if lines != screen():
            continue  # it is just being drawn
        rows = {int(line.split()[0]): line for line in lines[2:] if re.match(r" *\d+ ", line)}
        if rows == shown or not rows:
            seen = taken
            continue
        # This one was drawn after the last time that another was seen, and top looks for the next one after it has drawn this.
        begun, seen = [begun[1], seen], taken
        shown, different = rows, different + 1
        for program in programs:
            if program.pid in rows:
                told_of.append((program, told(rows[program.pid]), begun[0], time.time_ns()))
            if (program.pid in rows) != (program.process.poll() is None) and (not killed or begun[0] > killed):
                wrong.append("%d is %s" % (program.pid, rows.get(program.pid, "not shown")))
        if different == SECONDS // 2 + 1 and not killed:
            programs[0].kill()
            killed = time.time_ns()
    wrong += ["%d: %s" % (program.pid, figures) for program, figures, *window in told_of if not program.says(figures, *window, in_mib)]
    heads = {"killed": until(lambda: all(line.split()[:1] != [str(programs[0].pid)] for line in screen()))}
    for key, what in (("s", "sorted by peak"), ("q", None)):
        subprocess.run([*TMUX, "send-keys", key], check=True, timeout=60)
        heads[key] = until(lambda what=what: any(what in line for line in screen()) if what else subprocess.run([*TMUX, "has-session"], capture_output=True, check=False).returncode)
    return wrong + ([] if all(heads.values()) else ["shown in the end: %s" % heads])


def by_sites(programs):
    """What is wrong with the call sites of the second process in the order of the screen: they are those of a snapshot, by lines of the program, and of that process alone."""
    def keys(*words):
        subprocess.run([*TMUX, "send-keys", *words], check=True, timeout=60)

    def lines(what):
        return [line for line in screen() if what in line]
    wrong = []
    chosen = sorted(programs, key=lambda program: program.pid)[1]
    subprocess.run([*TMUX, "new-session", "-d", "-x", "300", "-y", "12", MEMSHIM, "top", "--sort", "pid"], check=True, timeout=60)
    if not until(lambda: len(lines("steps %s" % TMP[:20])) >= 3):
        wrong.append(["rows", screen()])
    keys("Down")
    keys("Enter")
    if not until(lambda: lines("CALL SITE") and lines("steps.c:")):
        wrong.append(["sites", screen()])
    shown = screen()
    if shown[0].split()[:1] != [str(chosen.pid)]:
        wrong.append(["of another process", shown])
    done = subprocess.run([MEMSHIM, "snapshot", "-f", "-o", "sites.json", str(chosen.pid)], capture_output=True, text=True, timeout=100, check=False)
    peak = subprocess.run([MEMSHIM, "peak", "sites.json"], capture_output=True, text=True, timeout=100, check=False).stdout
    told = {place for line in shown for place in re.findall(r"steps\.c:\d+", line)}
    if done.returncode or not told or not all(place in peak for place in told):
        wrong.append([told, peak, done.stderr])
    sizes = [number * {"B": 1 / MIB, "KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[unit] for line in shown if "steps.c:" in line for number, unit in [(float(SIZE.search(line).group(1)), SIZE.search(line).group(2))]]
    if sizes != sorted(sizes, reverse=True) or any(size * MIB > 24 * 16 * MIB for size in sizes):
        wrong.append(["sizes", sizes])
    keys("Enter")
    if not until(lambda: lines("memshim top: ") and not lines("CALL SITE")):
        wrong.append(["back", screen()])
    keys("Enter")
    until(lambda: lines("CALL SITE"))
    chosen.kill()
    if not until(lambda: lines("it has ended")):
        wrong.append(["killed", screen()])
    keys("q")
    if not until(lambda: subprocess.run([*TMUX, "has-session"], capture_output=True, check=False).returncode):
        wrong.append("q does not end it")
    return wrong


def typed(words, rows, columns, awaited, term="xterm"):
    """(status, all the bytes) that a terminal of this size gets; q is typed once that came."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM=term, LANG="C.UTF-8", LC_ALL="C.UTF-8")
        os.execv(MEMSHIM, [MEMSHIM, "top", *words])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    got = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        got += part
        if awaited in got:
            os.write(terminal, b"q")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), got


def look(programs):
    """The facts."""
    hostile = Watched(9, words=[HARM], RANK="7\x1b[31m")
    programs.append(hostile)
    done = subprocess.run([MEMSHIM, "top", "-n", "1", str(hostile.pid)], env=dict(os.environ, COLUMNS="300"), capture_output=True, timeout=100, check=False)
    bad = [byte for byte in done.stdout.decode() if (byte < " " and byte != "\n") or "\x7f" <= byte < "\xa0"]
    fact(done.returncode == 0 and b"owned" in done.stdout and done.stdout.count(b"\n") == 2 and not bad, "a program's own words are plain text in lines", [done.stdout, bad])
    status, got = typed([str(hostile.pid)], 10, 200, b"owned")
    fact(status == 0 and b"owned" in got and not any(harm in got for harm in (b"\x1b]0;owned", b"\x07", "\x9b".encode(), b"7\x1b[31m")), "and on the screen, which q ends", [status, got])
    for rows, columns in ((1, 1), (2, 30), (3, 500), (100, 20)):
        status, got = typed(["-s", "pid"], rows, columns, b"\x1b[")
        if status:
            break
    fact(status == 0, "a screen of any size", [status, rows, columns, got[-200:]])
    status, got = typed(["-n", "1"], 24, 80, b"\0", "dumb")
    fact(status == 0 and b"\x1b" not in got, "a dumb terminal gets lines", [status, got])
    programs.pop().kill()
    done = subprocess.run([MEMSHIM, "top", str(hostile.pid)], capture_output=True, text=True, timeout=100, check=False)
    fact(done.returncode == 0 and not done.stdout and done.stderr == "memshim: the process has ended\n", "processes that have ended end it", [done.returncode, done.stdout, done.stderr])
    os.unlink(next(name for name in os.listdir(TMP) if name.startswith("memshim-%d-" % hostile.pid)))
    wrong = by_lines(programs)
    fact(not wrong, "lines say what the programs' books say", wrong)
    wrong = by_json(programs)
    fact(not wrong, "so does JSON, while one of them is killed", wrong)
    programs[0] = Watched(4)
    if shutil.which("tmux"):
        wrong = by_screen(programs)
        fact(not wrong, "so does the screen, while one of them is killed", wrong)
        programs[0] = Watched(5)
        wrong = by_sites(programs)
        fact(not wrong, "Enter shows the call sites of the process that is chosen, as its snapshot has them", wrong)
    else:
        skip("the screen", "no tmux (scripts/install-deps --ci)")
        skip("call sites on it", "no tmux (scripts/install-deps --ci)")


def main():
    """Its facts."""
    os.chdir(TMP)
    os.environ["MEMSHIM_DIR"] = TMP
    done = subprocess.run([MEMSHIM, "top", "-n", "1"], capture_output=True, text=True, timeout=100, check=False)
    fact(done.returncode == 0 and "no process of yours" in done.stdout, "nobody runs", [done.stdout, done.stderr])
    wrong = []
    for words, line in ((["x"], "'x'"), (["1"], "process 1 has no ledger"), (["-d", "0"], "from 1 to 3600"), (["--sort", "size"], "live, peak"), (["-n", "-1"], "--count")):
        done = subprocess.run([MEMSHIM, "top", *words], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 2 or done.stdout or done.stderr.count("\n") != 1 or line not in done.stderr:
            wrong.append((words, done.returncode, done.stderr))
    fact(not wrong, "what makes no sense is refused in one line", wrong)
    programs = []
    try:
        for seed in (1, 2, 3):
            programs.append(Watched(seed))
        look(programs)
    finally:
        for program in programs:
            program.kill()
        subprocess.run([*TMUX, "kill-server"], capture_output=True, check=False)
    plan(11)


if __name__ == "__main__":
    if not os.access(MEMSHIM, os.X_OK):
        print("1..0 # SKIP the memshim command is not built")
    elif os.environ.get("TEST_SANITIZE"):
        print("1..0 # SKIP programs without a sanitizer are watched")
    else:
        main()
