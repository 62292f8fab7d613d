#!/usr/bin/env python3
"""memshim metrics: figures of processes that run, read by the reader of tests/export/. Only this user's own ledgers are opened; clients that mean
harm get the answer that they have earned, and nobody else waits for them."""
import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("export", "ledger", "hooks")]
import readers  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402
from watched import until  # noqa: E402

USER = os.path.join(os.environ["top_builddir"], "tests", "phases", "phases_user")
JOB = 'a"b\\c\nd'
GOOD = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
OPEN = b"application/openmetrics-text"


def start(rank):
    """A process that has allocated and waits to be killed."""
    environment = dict(os.environ, MEMSHIM_REPORT="none", MEMSHIM_DIR=TMP, LD_PRELOAD="%s:%s/libcuda.so.1" % (os.environ["TEST_LIB"], os.environ["TEST_SIM"]),
                       LD_LIBRARY_PATH=os.environ["TEST_SIM"], SLURM_PROCID=str(rank), SLURM_JOB_ID=JOB)
    process = subprocess.Popen([USER, "kill"], stdout=subprocess.PIPE, env=environment)
    process.stdout.readline()
    return process


def textfile(*words):
    """(status, its series, standard error)."""
    done = subprocess.run([MEMSHIM, "metrics", "--textfile", "-", *words], capture_output=True, timeout=60, check=False)
    return done.returncode, readers.metrics(done.stdout, False) if done.returncode == 0 else {}, done.stderr.decode()


def of(series, name, pid):
    """The sum of one process's."""
    return sum(value for labels, value in series.get(name, {}).items() if ("pid", str(pid)) in labels)


def raw(port, request, end=False):
    """All that comes back to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        with contextlib.suppress(OSError):
            client.sendall(request)
            if end:
                client.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(OSError):
            while part := client.recv(65536):
                answer += part
        return answer


def status_of(answer):
    """Of an answer that is whole; 0 for none."""
    if not answer:
        return 0
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(re.search(rb"\r\nContent-Length: (\d+)", head).group(1))
    assert len(body) == length, (head, len(body))
    return int(head.split(b" ")[1])


def get(named, **headers):
    """A request."""
    return b"GET /metrics HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (named, b"".join(b"%s: %s\r\n" % (key.replace("_", "-").encode(), value) for key, value in headers.items()))


def requests():
    """(what, request, the status that it earns)."""
    name = socket.gethostname().encode()
    rows = [("of %s" % host.decode(), get(host), 200) for host in (b"127.0.0.1", b"127.0.0.1:9", b"localhost", b"LOCALHOST:80", b"[::1]", b"[::1]:80", b"10.0.0.1", name)]
    rows += [("of %r" % host, get(host), 421) for host in (b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil.example", b"", b"[::1", b"[::1]x", b"127.0.0.1:x", b"127.1", b"localhost:80:80",
                                                           b"evil@127.0.0.1", b"a" * 300)]
    rows += [("by %s" % method, GOOD.replace(b"GET", method.encode()), 405) for method in ("POST", "HEAD", "PUT", "OPTIONS", "get")]
    rows += [("for %s" % path, GOOD.replace(b"/metrics", path.encode()), 404) for path in ("/", "/metrics/", "/metrics?x", "/../metrics", "//metrics", "http://127.0.0.1/metrics", "/" + "a" * 4000)]
    rows += [("no host", b"GET /metrics HTTP/1.1\r\n\r\n", 400), ("two hosts", get(b"127.0.0.1", host=b"evil.example"), 400), ("a body", get(b"127.0.0.1", content_length=b"3") + b"abc", 400),
             ("chunks", get(b"127.0.0.1", transfer_encoding=b"chunked") + b"0\r\n\r\n", 400), ("a folded line", GOOD[:-2] + b" more: x\r\n\r\n", 400), ("a space before the colon", GOOD[:-2] + b"a : x\r\n\r\n", 400),
             ("no colon", GOOD[:-2] + b"abc\r\n\r\n", 400), ("NUL", GOOD[:-4] + b"\0\r\n\r\n", 400), ("lines ended by LF", GOOD.replace(b"\r\n", b"\n") + b"\r\n\r\n", 400), ("a lone CR", GOOD[:-4] + b"\rx: y\r\n\r\n", 400),
             ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400), ("bytes", bytes(range(256)) * 8, 400), ("three words", b"GET  /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
             ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400), ("HTTP/0.9", b"GET /metrics\r\nHost: localhost\r\n\r\n", 400), ("HTTP/3", GOOD.replace(b"1.1", b"3"), 505), ("HTTP/1.0", GOOD.replace(b"1.1", b"1.0"), 200),
             ("an endless head", b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 100000, 431), ("an endless line", b"GET /" + b"a" * 1000000, 431), ("two requests at once", GOOD + GOOD, 200), ("what follows", GOOD + b"x" * 500000, 200)]
    return rows


def hostile(port):
    """What did not get what it has earned."""
    wrong = []
    for what, request, earned in requests():
        status = status_of(raw(port, request))
        if status != earned:
            wrong.append("%s: %d, not %d" % (what, status, earned))
    if raw(port, GOOD[:20], True) or raw(port, b"", True):
        wrong.append("an answer to a part of a request")
    return wrong


def crowd(port):
    """Clients that say a part and wait, more than there are places; some that never read."""
    clients = []
    for i in range(60):
        clients.append(socket.create_connection(("127.0.0.1", port), timeout=60))
        clients[-1].sendall((GOOD if i % 3 == 0 else GOOD[:i % 20]))
    statuses = [status_of(raw(port, GOOD)) for _ in range(3)]
    for client in clients:
        client.close()
    return [] if statuses == [200] * 3 else statuses


def first_look(port):
    """A first look that takes longer than a client may take for itself: who asked is answered, and others meanwhile."""
    wrong = []
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(GOOD)
        if not until(lambda: os.path.exists("brake.on")):
            wrong.append("nobody looks")
        time.sleep(6)
        if select.select([client], [], [], 0)[0]:
            wrong.append("an answer, or the end, before there were figures: %s" % client.recv(100))
        if status_of(raw(port, GOOD.replace(b"metrics", b"other"))) != 404:
            wrong.append("nobody else is served meanwhile")
        os.unlink("brake")
        if not client.recv(100).startswith(b"HTTP/1.1 200 "):
            wrong.append("no answer after a long look")
    return wrong


def later_look(port, processes):
    """Who asks during a later look is told what was there before."""
    wrong, asked = [], [raw(port, GOOD)]
    open("brake", "wb").close()
    with contextlib.suppress(FileNotFoundError):
        os.unlink("brake.on")
    processes.append(start(5))
    name = b'pid="%d"' % processes[-1].pid
    if not until(lambda: asked.append(raw(port, GOOD)) or os.path.exists("brake.on")):
        wrong.append("nobody looks again")
    asked.append(raw(port, GOOD))
    if any(status_of(answer) != 200 or name in answer for answer in asked):
        wrong.append([answer[:100] for answer in asked])
    os.unlink("brake")
    return wrong + ([] if until(lambda: name in raw(port, GOOD)) else ["what began later is not told"])


def busy():
    """Looks that do not end (slow.c) keep nobody from an answer: what is wrong."""
    slow = {"LD_PRELOAD": os.path.join(os.environ["top_builddir"], "tests", "ledger", "slow.so"), "SLOW_WHILE": os.path.join(TMP, "brake")}
    processes = [start(6)]
    open("brake", "wb").close()
    try:
        with served(**slow) as (port, _):
            wrong = first_look(port)
        with served(**slow) as (port, _):
            return wrong + later_look(port, processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()


OTHERS = r"memshim: \S+ is another user's and left out\n"


@contextlib.contextmanager
def served(**more):
    """The port of one that listens."""
    server = subprocess.Popen([MEMSHIM, "metrics", "--listen", "0"], stderr=subprocess.PIPE, text=True, env=dict(os.environ, **more))
    try:
        yield int(re.fullmatch(r"memshim: metrics at http://127\.0\.0\.1:(\d+)/metrics\n", server.stderr.readline()).group(1)), server
    finally:
        server.terminate()
        said = server.stderr.read()
        fact(server.wait() == -signal.SIGTERM and not re.sub(OTHERS, "", said), "it ends by the signal, and has said nothing", [server.returncode, said])


def plant(pid):
    """What is nobody's business: a link to a ledger, a pipe, what is no ledger, and if that can be had, another user's."""
    own = next(name for name in os.listdir(TMP) if name.startswith("memshim-%d-" % pid))
    os.symlink(own, "memshim-1-1.ledger")
    os.mkfifo("memshim-2-2.ledger")
    with open("memshim-3-3.ledger", "wb") as file:
        file.write(b"memshim" * 1000)
    if os.geteuid() == 0:
        os.chown(own, 65534, 65534)
    return own


def look(processes):
    """The facts of two that run."""
    first, second = (process.pid for process in processes)
    subprocess.run([MEMSHIM, "snapshot", "-o", "snapshot.json", str(first)], capture_output=True, timeout=60, check=True)
    with open("snapshot.json", encoding="utf-8") as file:
        report = json.load(file)
    status, series, error = textfile()
    figures = (("live_bytes", "live_bytes"), ("peak_live_bytes", "peak_live_bytes"), ("reserved_bytes", "held_bytes"), ("pool_bytes", "reserved_bytes"))
    wrong = [name for name, key in figures if of(series, "memshim_device_" + name, first) != sum(device[key] for device in report["devices"])]
    fact(status == 0 and not error and not wrong and of(series, "memshim_device_live_bytes", first) > 0, "figures of a process are its snapshot's", [status, error, *wrong])
    owned = [sum(site[key] for site in report["sites"]) - of(series, name, first) for key, name in (("live_bytes", "memshim_owner_live_bytes"), ("at_peak_bytes", "memshim_owner_peak_bytes"))]
    fact(owned == [0, 0], "owners add up to its call sites", owned)
    labels = [dict(row) for row in series["memshim_device_live_bytes"]]
    fact({(row["pid"], row["rank"], row["job"].replace("?", "\n")) for row in labels} == {(str(first), "3", JOB), (str(second), "4", JOB)}, "each has its rank, and its job's name escaped", labels)
    fact(sum(series["memshim_processes"].values()) == 2 and sum(series["memshim_processes_left_out"].values()) == 0, "and they are counted", [])
    with served() as (port, server):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        client.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0,text/plain;q=0.5"})
        answer = client.getresponse()
        content, body = answer.getheader("Content-Type"), answer.read()
        fact(content == "application/openmetrics-text; version=1.0.0; charset=utf-8" and readers.metrics(body, True) == series, "a scrape has the same as OpenMetrics", [content])
        plain = raw(port, GOOD)
        fact(b"text/plain; version=0.0.4" in plain and readers.metrics(plain.partition(b"\r\n\r\n")[2], False) == series, "or as text, for who does not ask for it")
        wrong = hostile(port)
        fact(not wrong, "clients that mean harm get what they have earned", wrong)
        wrong = crowd(port)
        fact(not wrong, "nobody waits for those who say nothing", wrong)
        status, _, error = textfile()
        taken = subprocess.run([MEMSHIM, "metrics", "--listen", "127.0.0.1:%d" % port], capture_output=True, text=True, timeout=60, check=False)
        fact(taken.returncode == 2 and "cannot listen" in taken.stderr and taken.stderr.count("\n") == 1 and server.poll() is None, "a port that is taken is refused in one line", [taken.stderr])
    own = plant(first)
    status, series, error = textfile()
    pids = {dict(row)["pid"] for row in series["memshim_device_live_bytes"]}
    fact(status == 0 and bool(re.fullmatch(OTHERS if os.geteuid() == 0 else "", error)) and pids == ({str(second)} if os.geteuid() == 0 else {str(first), str(second)}), "links, others' ledgers and what is none are left alone", [error, own, sorted(pids)])


def main():
    """Its facts."""
    os.chdir(TMP)
    os.environ["MEMSHIM_DIR"] = TMP
    processes = []
    try:
        processes += [start(rank) for rank in (3, 4)]
        look(processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    wrong = busy()
    fact(not wrong, "a look that takes long keeps nobody from an answer", wrong)
    status, series, error = textfile()
    fact(status == 0 and not re.sub(OTHERS, "", error) and "memshim_device_live_bytes" not in series and sum(series["memshim_processes"].values()) == 0, "who was killed is not told", [status, error])
    wrong = []
    for words, line in (([], "one of --textfile and --listen"), (["--textfile", "a", "--listen", "1"], "one of"), (["--listen", "70000"], "from 0 to 65535"), (["--listen", "evil.example:1"], "in digits"),
                        (["--listen", "[::1:1"], "in digits"), (["--listen", ":1"], "in digits"), (["--listen", "1", "x"], "takes no file"), (["--textfile", "snapshot.json"], "exists")):
        done = subprocess.run([MEMSHIM, "metrics", *words], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 2 or done.stdout or done.stderr.count("\n") != 1 or line not in done.stderr:
            wrong.append((words, done.returncode, done.stderr))
    fact(not wrong, "what makes no sense is refused in one line", wrong)
    modes = {}
    for readers_are in ("owner", "all"):
        subprocess.run([MEMSHIM, "metrics", "-f", "--textfile", "memshim.prom"], env=dict(os.environ, MEMSHIM_READERS=readers_are), timeout=60, check=True)
        modes[readers_are] = os.stat("memshim.prom").st_mode & 0o777
    fact(modes == {"owner": 0o600, "all": 0o644}, "the text file is for its owner, or for a collector that is another user", [modes])
    plan(17)


if __name__ == "__main__":
    if not os.access(MEMSHIM, os.X_OK):
        print("1..0 # SKIP the memshim command is not built")
    elif os.environ.get("TEST_SANITIZE"):
        print("1..0 # SKIP the shim is preloaded by hand: no sanitizer")
    else:
        main()
