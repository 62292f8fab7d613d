"""scripts/bench html: what the page of a large report takes: to make, to draw, to move about in. docs/internals/bench.md says what is measured."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SITES = 100000
# The distribution's interpreter has selenium, which need not be this one.
PYTHON = "/usr/bin/python3"
# What each view does when one moves about in it: a step of script, and what draws it at once.
MOVES = {
    "time": ("const c = page.views.time.charts[0], w = c.data[0][c.data[0].length - 1]; page.views.time.range(c, w * STEP / 100, w * (STEP + 40) / 100); c.plot.redraw(true)"),
    "flame": ("const f = page.views.flame; f.zoomTo(f.rects[4 * (STEP * 7 % (f.rects.length / 4))]); f.picture.now(); f.zoomTo(0); f.picture.now()"),
    "segments": ("const s = page.views.segments; s.lines = 120 + STEP; s.pan(3); s.picture.now()"),
    "sites": ("const g = page.views.sites.grid; g.body.scrollTop = STEP * 40000; g.draw(); g.body.getBoundingClientRect()"),
}
# uPlot draws in a microtask.
MOVE = ("const STEP = arguments[0], done = arguments[1], begun = performance.now(); (async () => { %s; for (let i = 0; i < 4; i++) await null; "
        "done(performance.now() - begun); })()")


def look(page):
    """In the browser: milliseconds to unpack, to draw each view for the first time, and for each of 40 moves."""
    sys.path.insert(0, os.path.join(TOP, "tests/html"))
    import browser  # pylint: disable=import-outside-toplevel
    driver = browser.start()
    try:
        tried = browser.Tried(driver, page)
        ready = tried.run("return page.readyAfter")
        views = {}
        for view in browser.VIEWS:
            drawn = tried.run("const begun = performance.now(); page.show(arguments[0]); const v = page.views[arguments[0]]; if (v.picture) v.picture.now(); "
                              "document.body.getBoundingClientRect(); return performance.now() - begun", view)
            moves = [tried.driver.execute_async_script(MOVE % MOVES[view], step) for step in range(40)] if view in MOVES else []
            views[view] = (drawn, moves)
        return {"ready_ms": ready, "views": views}
    finally:
        driver.quit()


def make(memshim, place):
    """The page of a report of 100,000 sites: its bytes, and the command's seconds and memory."""
    report, page = os.path.join(place, "large.json"), os.path.join(place, "large.html")
    base = os.path.join(TOP, "tests/cli/data/train.json")
    subprocess.run([sys.executable, "-B", os.path.join(TOP, "tests/html/reports.py"), "large", report, str(SITES), base], check=True)
    times = []
    for verb in (["peak", "--top", "1"], ["html", "-f", "-o", page]):
        with subprocess.Popen([memshim, *verb, report], stdout=subprocess.DEVNULL) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"memshim {verb[0]} failed")
        times.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    return page, times


def bench_html(options):
    """A row for each view; what is of the whole page stands in each."""
    with tempfile.TemporaryDirectory() as place:
        page, ((peak_s, peak_mib), (html_s, html_mib)) = make(os.path.join(options.build, "memshim"), place)
        done = subprocess.run([PYTHON, "-B", os.path.abspath(__file__), page], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"no browser (scripts/test-browser installs one): {done.stderr.strip().splitlines()[-1:]}")
        told = json.loads(done.stdout)
        return [{"allocator": "memshim", "sites": SITES, "page_bytes": os.path.getsize(page), "cpu_s": round(html_s, 2), "cpu_over_peak": round(html_s / peak_s, 2), "mib": round(html_mib),
                 "mib_over_peak": round(html_mib / peak_mib, 2), "ready_ms": round(told["ready_ms"]), "view": view, "draw_ms": round(drawn, 1),
                 "move_ms_median": moves and round(statistics.median(moves), 1) or None, "move_ms_most": moves and round(max(moves), 1) or None}
                for view, (drawn, moves) in told["views"].items()]


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1])))
