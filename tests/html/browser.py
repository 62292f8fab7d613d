"""The page of `memshim html` in a real Chromium, headless, with no network: every view, search, click, keyboard, theme and print;
no console message; and the figures that are read back out of the running page against those of the report.

Usage: browser.py BUILD DIRECTORY [SCREENSHOTS|--quick]      run by scripts/test-browser, and quickly by tests/html/quick.sh; prints TAP
"""

import base64
import json
import os
import subprocess
import sys
import time
import traceback

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "merge")]
import made as ranks  # noqa: E402  pylint: disable=wrong-import-position
import reports  # noqa: E402  pylint: disable=wrong-import-position

VIEWS = ["overview", "time", "flame", "segments", "sites", "phases", "findings", "about"]
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "data", "train.json")


def start():
    """A browser that resolves no name."""
    options = Options()
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000", "--hide-scrollbars", "--force-device-scale-factor=1",
                   "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--no-first-run"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
    return driver


class Tried:
    """A page in a browser."""

    def __init__(self, driver, page, memshim=None):
        self.driver, self.memshim, self.source = driver, memshim, page.replace(".html", ".json")
        driver.get("file://" + page)
        deadline = time.monotonic() + 120
        while self.run("return document.documentElement.getAttribute('data-ready')") is None and time.monotonic() < deadline:
            time.sleep(0.05)
        ready = self.run("return document.documentElement.getAttribute('data-ready')")
        assert ready == "yes", (ready, driver.get_log("browser"))

    def run(self, script, *arguments):
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def show(self, view):
        """The view is shown and drawn."""
        self.driver.find_element(By.ID, f"tab-{view}").click()
        self.frames()
        assert self.run("return document.getElementById(arguments[0]).hidden", f"view-{view}") is False

    def frames(self):
        """Two frames later."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def value(self, selector):
        """The exact figure behind a short one."""
        return int(self.run("return document.querySelector(arguments[0]).getAttribute('data-value')", selector).split(".")[0])

    def text(self, selector):
        """The text of an element."""
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def colours(self, view):
        """How many colours the view's picture has: a blank one has one."""
        return self.run("""const canvas = document.querySelector('#view-' + arguments[0] + ' canvas');
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
            for (let i = 0; i < data.length; i += 4 * 7) found.add(data[i] << 24 | data[i + 1] << 16 | data[i + 2] << 8 | data[i + 3]);
            return found.size""", view)

    def keys(self, selector, *keys):
        """Keys, with the element focused."""
        self.driver.execute_script("document.querySelector(arguments[0]).focus()", selector)
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
        self.frames()

    def quiet(self):
        """No console message since the last time."""
        messages = [row for row in self.driver.get_log("browser") if "willReadFrequently" not in row["message"]]  # our own reading back
        assert not messages, messages

    def shot(self, directory, name):
        """A picture of what is shown."""
        if directory:
            self.driver.save_screenshot(os.path.join(directory, f"{name}.png"))


def every_view(page, report, shots):
    """Drawn, and not blank."""
    for view in VIEWS:
        page.show(view)
        text = page.text(f"#view-{view}")
        assert len(text) > 40, view
        assert not any(slip in text for slip in ("undefined", "NaN", "[object")), (view, text)
        page.shot(shots, view)
    for view in ("time", "flame", "segments"):
        page.show(view)
        assert page.colours(view) > 3, view
    page.show("time")
    assert page.run("""const plot = page.views.time.charts[0].plot, axis = plot.axes[0], context = document.createElement('canvas').getContext('2d');
        context.font = '11px system-ui';
        const ends = axis._splits.map((split, i) => [plot.valToPos(split, 'x'), context.measureText(axis._values[i]).width / 2]);
        return ends.length > 1 && ends.every(([at, half], i) => i === 0 || ends[i - 1][0] + ends[i - 1][1] + 4 < at - half)"""), "labels of the time axis touch"
    del report


def first_screen(page, report, shots):
    """The first screen: memory over time, who held the peak, what grew, and one thing to do; an address for each view; narrow too."""
    page.show("overview")
    page.frames()
    tops = page.run("""return ['first-picture', 'first-holders', 'first-grew', 'first-next'].map((id) => document.getElementById(id).getBoundingClientRect())
        .map((box) => [box.left, box.top, box.bottom])""")
    assert tops[0][1] == tops[1][1] and tops[0][0] < tops[1][0] and tops[2][1] >= tops[0][2] and tops[3][2] <= 1000, tops
    assert page.colours("overview") > 3
    most = max((site for site in report["sites"] if site.get("device", 0) >= 0), key=lambda site: site["at_peak_bytes"])
    assert page.value("#first-holders .figure") == most["at_peak_bytes"]
    assert page.run("return document.querySelectorAll('#first-next button').length") == 1
    grew = sum(leak["bytes"] for leak in report["leaks"] if leak.get("pattern") in ("growing", "lost"))
    assert ("Nothing grew" in page.text("#first-grew")) == (grew == 0), page.text("#first-grew")
    if report["oom"]:
        assert "Out of memory" in page.text("#first-oom") and "Memory ran out" in page.text("#next"), page.text("#next")
        assert page.run("return document.getElementById('first-oom').getBoundingClientRect().top") < tops[0][1]
    assert "\ufffd" not in page.text("#view-overview")
    for view in VIEWS:
        page.show(view)
        assert page.run("return location.hash") == ("" if view == "overview" else "#" + view) or view == "overview", view
    for view in ("flame", "about"):
        page.run("location.hash = arguments[0]", view)
        page.frames()
        assert not page.run("return document.getElementById('view-' + arguments[0]).hidden", view), view
    page.show("overview")
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    time.sleep(0.2)
    assert page.run("return document.documentElement.scrollWidth") <= 390, page.run("return document.documentElement.scrollWidth")
    page.shot(shots, "overview-narrow")
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.frames()


def figures(page, report, _shots):
    """What the running page shows is what the report says."""
    device, sites = report["devices"][0], report["sites"]
    page.show("overview")
    for key in ("peak_live_bytes", "live_bytes", "peak_held_bytes", "allocated_bytes"):
        most = max(device.get("peak_held_bytes", 0), device["peak_live_bytes"], device["peak_reserved_bytes"])
        assert page.value(f"[data-fact={key}]") == (most if key == "peak_held_bytes" else device.get(key, 0)), key
    leaked = sum(leak["bytes"] for leak in report["leaks"] if leak["class"] not in ("suppressed", "cache"))
    assert page.value("[data-fact=leaked]") == leaked
    for key, name in (("peak", "at_peak_bytes"), ("live", "live_bytes"), ("total", "total_bytes"), ("count", "total_count"), ("rounding", "rounding_bytes"),
                      ("max_bytes", "max_bytes"), ("freed_count", "freed_count"), ("requested_bytes", "requested_bytes")):
        shown = page.run("return Array.from(page.report.site(arguments[0]), (_, i) => String(exactAt(page.report.site(arguments[0]), i)))", key)
        assert shown == [str(site.get(name, 0)) for site in sites], key
    page.show("flame")
    for key, name in (("peak", "at_peak_bytes"), ("live", "live_bytes"), ("total", "total_bytes"), ("count", "total_count")):
        for way in ("out", "in"):
            Select(page.driver.find_element(By.ID, "flame-value")).select_by_value(key)
            Select(page.driver.find_element(By.ID, "flame-way")).select_by_value(way)
            assert page.value("#flame-says") == sum(site[name] for site in sites), (key, way)
    Select(page.driver.find_element(By.ID, "flame-value")).select_by_value("peak")
    Select(page.driver.find_element(By.ID, "flame-way")).select_by_value("out")
    page.show("segments")
    pool = [segment for segment in report["segments"] if segment["tier"] != "followed"]
    assert page.value("#segment-whole") == sum(segment["bytes"] for segment in pool or report["segments"])
    blocks = [block for segment in pool for block in segment["blocks"]]
    if pool:
        assert page.value("[data-use=live]") == sum(block["requested"] for block in blocks if block["state"] == "live")
    series = report["timeline"]["devices"][0]["live"]
    assert page.run("return Array.from(page.report.timeline().devices[0].live)") == series


def stranded(page, report, _shots):
    """Whose blocks strand free memory is what memshim frag says."""
    with open(page.source, encoding="utf-8") as file:
        assert json.load(file)["sites"] == report["sites"]
    told = json.loads(subprocess.run([page.memshim, "frag", "--json", "-n", "1000000", page.source], check=True, capture_output=True).stdout)["devices"][0]
    page.show("segments")
    holders = page.run("return holdersOf(page.report, 0, page.views.segments.uses)")
    assert holders and holders == [{"site": row["site"], "stranded": row["stranded_bytes"], "live": row["live_bytes"], "segments": row["segments"]} for row in told["holders"]]


def several(page, _report, _shots):
    """Of several reports one is chosen, and the list has them all."""
    page.show("overview")
    assert page.run("return document.querySelectorAll('#processes tbody tr').length") == 2
    first = page.value("[data-fact=peak_live_bytes]")
    Select(page.driver.find_element(By.ID, "report")).select_by_value("1")
    deadline = time.monotonic() + 60
    while page.value("[data-fact=peak_live_bytes]") == first and time.monotonic() < deadline:
        time.sleep(0.05)
    listed = page.run("return [...document.querySelectorAll('#processes tbody tr')].map((row) => row.querySelector('.figure').getAttribute('data-value'))")
    assert [first, page.value("[data-fact=peak_live_bytes]")] == [int(value) for value in listed]


def of_tensors(page, reports_of, shots):
    """A report with tensors shows them, and by a switch the blocks; other reports are shown in the same layer."""
    def choose(select, value, fact, wanted):
        Select(page.driver.find_element(By.ID, select)).select_by_value(value)
        deadline = time.monotonic() + 60
        while page.value(f"[data-fact={fact}]") != wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        assert page.value(f"[data-fact={fact}]") == wanted, (select, value, page.value(f"[data-fact={fact}]"), wanted)
        for view in VIEWS:
            page.show(view)
            page.frames()
        page.show("overview")
    first, second = reports_of
    page.show("overview")
    page.shot(shots, "html-tensors")
    assert page.value("[data-fact=peak_live_bytes]") == first["inner_devices"][0]["peak_live_bytes"]
    assert "the tensors that PyTorch gave" in page.text("#layer-line")
    assert page.value("[data-fact=peak_held_bytes]") == first["inner_devices"][0]["peak_held_bytes"]
    assert page.run("return Array.from(page.report.timeline().devices[0].live)") == first["inner_timeline"]["devices"][0]["live"]
    assert page.run("return Array.from(page.report.timeline().devices[0].reserved)") == first["timeline"]["devices"][0]["live"]
    assert page.run("return document.querySelectorAll('#processes tbody tr').length") == 2
    page.show("segments")
    assert page.value("#segment-whole") == sum(segment["bytes"] for segment in first["inner_segments"])
    page.show("overview")
    choose("layer", "1", "peak_live_bytes", first["devices"][0]["peak_live_bytes"])
    assert "tensors" not in page.text("#owners")
    choose("report", "3", "peak_live_bytes", second["devices"][0]["peak_live_bytes"])
    choose("layer", "2", "peak_live_bytes", second["inner_devices"][0]["peak_live_bytes"])
    page.show("findings")
    assert 'phases "train step" left more' in page.text("#view-findings") and "most was held by " in page.text("#view-findings"), page.text("#view-findings")


def of_a_job(page, report, shots):
    """What the processes of a job had, who had most, and who stands out."""
    page.show("overview")
    job = report["job"]
    for name, key in (("owners", "at_peak_bytes"), ("phases", "peak_bytes")):
        most = page.run("return [...document.querySelectorAll(arguments[0])].map((row) => row.querySelectorAll('.figure')[2].getAttribute('data-value'))", f"#job-{name} tbody tr")
        assert [int(value) for value in most] == sorted((row[key]["max"] for row in job[name]), reverse=True), (name, most)
    first = page.run("return [...document.querySelectorAll('#job-outliers tbody tr')].map((row) => row.textContent)")
    assert len(first) == len(job["outliers"]) and all(f"rank {row['rank']} on " in text and "stray" in text for text, row in zip(first, job["outliers"])), first
    assert page.text("#job-line").startswith(f"{len(report['ranks'])} processes"), page.text("#job-line")
    alike = page.run("return [...document.querySelectorAll('#job-figures tbody tr')].map((row) => row.lastChild.textContent === 'all alike')")
    assert alike == [row["min"] == row["max"] for row in (job["figures"][key] for key in ("peak_bytes", "live_bytes", "leaked_bytes", "reserved_bytes", "growth_bytes"))], alike
    assert not any(slip in page.text("#job") for slip in ("undefined", "NaN", "[object")), page.text("#job")
    page.shot(shots, "job")


def laid_over(page, reports_of, shots):
    """Another report's memory is laid over a chart: its most, and all of its time."""
    page.show("time")
    other = reports_of[1]["timeline"]
    most, lasts = max(other["devices"][0]["live"]), (other["t"][-1] + other["bucket_ns"]) / 1e9
    columns = len(page.run("return page.views.time.charts[0].data"))
    for chosen, expected in (("1", columns + 1), ("", columns), ("1", columns + 1)):
        Select(page.driver.find_element(By.ID, "over")).select_by_value(chosen)
        deadline = time.monotonic() + 60
        while page.run("return page.views.time.charts[0].plot.series.length") != expected and time.monotonic() < deadline:
            time.sleep(0.05)
        assert page.run("return page.views.time.charts[0].data.length") == expected
    page.frames()
    page.shot(shots, "over")
    told = page.run("const data = page.views.time.charts[0].data; return [Math.max(...data[data.length - 1]), data[0][data[0].length - 1], data.every((one) => one.length === data[0].length)]")
    own = page.run("return page.views.time.charts[0].own[0].slice(-1)[0]")
    assert told[0] == most and abs(told[1] - max(own, lasts)) < 1e-6 and told[2], (told, most, own, lasts)


def search(page, report, _shots):
    """In the flame graph and the list of sites: what is found weighs what the report says."""
    page.show("flame")
    box = page.driver.find_element(By.ID, "flame-search")
    wanted = page.run("return page.report.siteLine(sitesBy(page.report, page.report.site('peak'))[0])").split("(")[0]
    box.send_keys(wanted)
    page.frames()
    found = page.value("#flame-matched")
    page.show("sites")
    page.driver.find_element(By.ID, "sites-filter").send_keys(wanted)
    page.frames()
    assert 0 < found == page.value("#sites-count .figure"), (found, page.text("#sites-count"))
    assert 0 < page.run("return page.views.sites.grid.rows.length") <= len(report["sites"])
    page.driver.find_element(By.ID, "sites-filter").clear()
    box = page.driver.find_element(By.ID, "sites-filter")
    box.send_keys("no such thing anywhere")
    assert page.run("return page.views.sites.grid.rows.length") == 0
    page.run("document.getElementById('sites-filter').value = ''; page.views.sites.choose()")
    page.run("page.views.flame.search.value = ''; page.views.flame.look('')")


def held_at(page, ns):
    """Of what moment the page tells who held the first device, when that was, and the bytes."""
    return page.run("const held = heldAt(page.report, 0, arguments[0], arguments[0] + 1, false); return [held.kind, held.ns, held.rows.map((row) => row.bytes)]", ns)


def held_in(site, moment):
    """What a site held at a moment of the timeline, by the report."""
    return ([0] + [number for i, number in site.get("held", []) if i <= moment])[-1]


def clicks(page, report, shots):
    """A frame zooms, a moment tells who held it, a site has its stack, a heading sorts."""
    page.show("flame")
    canvas = page.driver.find_element(By.CSS_SELECTOR, "#view-flame canvas")
    x = -canvas.size["width"] // 2 + 30
    ActionChains(page.driver).move_to_element_with_offset(canvas, x, -canvas.size["height"] // 2 + 18 * 3 + 9).click().perform()
    page.frames()
    zoom, weight = page.run("return [page.views.flame.zoom, page.views.flame.weight[page.views.flame.zoom]]")
    assert zoom > 0 and page.value("#flame-says") == weight
    page.shot(shots, "flame-zoomed")
    page.driver.find_element(By.ID, "flame-out").click()
    page.show("time")
    over = page.driver.find_element(By.CSS_SELECTOR, "#chart-0 .u-over")
    ActionChains(page.driver).move_to_element_with_offset(over, -over.size["width"] // 6, 0).click().perform()
    page.frames()
    assert page.run("return document.querySelectorAll('#time-detail table').length") > 0, page.text("#time-detail")
    page.run("page.views.time.choose(page.views.time.charts[0], arguments[0])", max(range(len(report["timeline"]["t"])), key=lambda i: report["timeline"]["devices"][0]["live"][i]))
    assert "The device's peak, in this stretch" in page.text("#time-detail")
    assert sum(held_at(page, report["devices"][0]["peak_ns"])[2]) == report["devices"][0]["peak_live_bytes"]
    for i, ns in enumerate(report["timeline"]["moments"]):
        kind, then, rows = held_at(page, ns)
        assert kind != "moment" or then == ns
        if kind == "moment":
            assert sum(rows) == sum(held_in(site, i) for site in report["sites"] if site["device"] == 0)
    page.shot(shots, "time-held")
    page.show("sites")
    page.driver.find_element(By.CSS_SELECTOR, "#sites-grid .inner .row").click()
    assert page.run("return document.querySelectorAll('#sites-detail ol li').length") > 1
    for heading in page.driver.find_elements(By.CSS_SELECTOR, "#sites-grid .head button"):
        if heading.text == "Total":
            heading.click()
    first = page.run("return String(exactAt(page.report.site('total'), page.views.sites.grid.rows[0]))")
    assert first == str(max(site["total_bytes"] for site in report["sites"]))
    page.show("segments")
    canvas = page.driver.find_element(By.CSS_SELECTOR, "#view-segments canvas")
    ActionChains(page.driver).move_to_element_with_offset(canvas, 3, 0).click().perform()
    assert "segment 0x" in page.text("#segment-detail")


def keyboard(page, _report, _shots):
    """Without a mouse."""
    page.show("overview")
    page.keys("#tab-overview", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.run("return page.view") == "flame"
    page.keys("#view-flame canvas", Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    assert page.run("return page.views.flame.zoom") > 0
    page.keys("#view-flame canvas", Keys.ESCAPE, Keys.ESCAPE, Keys.ESCAPE)
    assert page.run("return page.views.flame.zoom") == 0
    page.show("time")
    page.keys("#chart-0", Keys.HOME, Keys.ARROW_RIGHT, Keys.ENTER)
    assert page.run("return page.views.time.charts[0].chosen") == 1
    page.keys("#chart-0", "+")
    narrow = page.run("const s = page.views.time.charts[0].plot.scales.x; return s.max - s.min")
    page.keys("#chart-0", Keys.ESCAPE)
    assert narrow < page.run("const s = page.views.time.charts[0].plot.scales.x; return s.max - s.min")
    page.show("sites")
    page.keys("#sites-grid", Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.HOME)
    assert page.run("return page.views.sites.grid.at") == 0
    page.show("segments")
    page.keys("#view-segments canvas", Keys.ARROW_RIGHT, "+", "+", Keys.ARROW_DOWN, Keys.ENTER)
    assert page.run("return page.views.segments.lines") == 120 and "segment 0x" in page.text("#segment-detail")


def theme(page, _report, shots):
    """Light and dark are told apart, on canvases too."""
    page.show("flame")
    seen = set()
    for setting in ("light", "dark"):
        page.driver.find_element(By.ID, "theme").click()
        page.frames()
        assert page.run("return document.documentElement.getAttribute('data-theme')") == setting
        seen.add(page.run("const c = document.querySelector('#view-flame canvas'); return getComputedStyle(document.body).backgroundColor + c.getContext('2d').getImageData(200, 5, 1, 1).data.join()"))
    assert len(seen) == 2, seen
    page.shot(shots, "flame-dark")
    page.show("overview")
    page.shot(shots, "overview-dark")
    page.driver.find_element(By.ID, "theme").click()


def printed(page, _report, _shots):
    """All views are on paper."""
    pdf = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 5, pdf.count(b"/Type /Page")
    page.frames()
    assert page.run("return [...document.querySelectorAll('.view')].filter((view) => !view.hidden).length") == 1


def readable(page, _report, _shots):
    """Roles, names, and a table behind each picture."""
    for view in ("time", "flame", "segments"):
        page.show(view)
        page.run("document.querySelector('#view-' + arguments[0] + ' details.behind').open = true", view)
        time.sleep(0.1)
        assert page.run("return document.querySelectorAll('#view-' + arguments[0] + ' details.behind tbody tr').length", view) > 2, view
    unnamed = page.run("return [...document.querySelectorAll('canvas[tabindex],input,select,[role=grid],[role=application]')].filter((e) => !e.getAttribute('aria-label') && !e.closest('label')).length")
    assert unnamed == 0, unnamed
    assert page.run("return document.querySelectorAll('[role=tab][aria-selected=true]').length") == 1


def harmless(page, _report, _shots):
    """What the names hold has made no element, run no script, and named no address."""
    for view in VIEWS:
        page.show(view)
    page.run("for (const d of document.querySelectorAll('details')) d.open = true")
    page.frames()
    assert page.run("return window.hacked") is None
    assert page.run("return document.querySelectorAll('img,b[onclick],iframe,object,embed,script').length") == 1
    texts = page.run("return [...document.querySelectorAll('*')].flatMap((e) => [...e.attributes].map((a) => a.name)).filter((n) => n.startsWith('on') || n === 'src')")
    assert texts == [], texts
    assert "</script>" in page.run("return document.body.textContent")
    page.show("sites")
    page.run("page.views.sites.grid.choose(0)")
    assert not page.run("return /[\\u0000-\\u0008\\u202a-\\u202e]/.test(document.getElementById('main').textContent)")


def trained(build, directory):
    """The report of a real program on the simulated GPU."""
    path = os.path.join(directory, "training.json")
    subprocess.run([os.path.join(build, "memshim"), "run", "-q", "-f", "--sim", "-o", path, "--", os.path.join(build, "tests/programs/training"), "400"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([os.path.join(build, "memshim"), "symbolize", "-f", path], check=True)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # Where it was built is nobody's business in a picture.
    source = next(frame["file"] for frame in json.loads(text)["frames"] if frame.get("file", "").endswith("tests/programs/training.c"))
    return json.loads(text.replace(source[:-len("tests/programs/training.c")], "").replace(build + "/", ""))


def wanting(build, directory):
    """The report of a program for which there was no memory, and that the driver took memory for."""
    path = os.path.join(directory, "wanting.json")
    subprocess.run([os.path.join(build, "memshim"), "run", "-q", "-f", "--sim", "-o", path, "--", os.path.join(build, "tests/cases/wanting")],
                   check=False, stdout=subprocess.DEVNULL, env=dict(os.environ, MEMSIM_MEMORY="2G", MEMSIM_CONTEXT="300M"))
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def tensors(build, directory, way):
    """The report of a program whose allocator tells its pieces."""
    path, libraries = os.path.join(directory, way + ".json"), os.path.join(build, "tests/inner")
    subprocess.run([os.path.join(build, "memshim"), "run", "-q", "-f", "--sim", "-o", path, "--", os.path.join(libraries, "inner_user"), way],
                   check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, LD_LIBRARY_PATH=libraries))
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def merged(memshim, directory):
    """A job report of ranks that nobody ran, one of which stands out."""
    paths = [os.path.join(directory, f"rank{rank}.json") for rank in range(24)]
    for rank, path in enumerate(paths):
        ranks.write(path, rank, len(paths), 13)
    subprocess.run([memshim, "merge", "-f", "-o", os.path.join(directory, "merged.json"), *paths], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(directory, "merged.json"), encoding="utf-8") as file:
        return json.load(file)


def made(memshim, directory, name, *several_reports):
    """A page of these reports."""
    names, page = [name, *(f"{name}-{i}" for i in range(1, len(several_reports)))], os.path.join(directory, f"{name}.html")
    for each, report in zip(names, several_reports):
        with open(os.path.join(directory, f"{each}.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(report, ensure_ascii=False))
    # By their names alone: the page shows what they were called.
    subprocess.run([memshim, "html", "-f", *(f"{each}.json" for each in names), "-o", page], check=True, cwd=directory)
    return page


def main():
    """See above."""
    build, directory = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    memshim = os.path.join(build, "memshim")
    quick = sys.argv[3:] == ["--quick"]
    shots = sys.argv[3] if len(sys.argv) > 3 and not quick else None
    with open(DATA, encoding="utf-8") as file:
        base = json.load(file)
    training = trained(build, directory)
    usual = reports.large(base, 100 if quick else 2000, 256, 200, 8)
    nasty = reports.hostile(base)
    layers = ("tensors", [tensors(build, directory, way) for way in ("torch", "grow")], shots, [of_tensors])
    checks = [("training", training, None, [every_view, figures, first_screen, clicks]), layers] if quick else [("training", training, shots, [every_view, figures, first_screen, clicks, theme, readable]), ("wanting", wanting(build, directory), None, [first_screen, every_view]), ("usual", usual, None, [every_view, figures, stranded, search, clicks, keyboard, theme, readable, printed]), ("hostile", nasty, None, [harmless, every_view, keyboard]),
              ("empty", {**base, "sites": [], "leaks": [], "findings": [], "oom": []}, None, [lambda page, _report, _shots: [page.show(view) for view in VIEWS]]),
              ("two", [training, usual], shots, [laid_over, several]), ("job", merged(memshim, directory), shots, [of_a_job]), layers]
    driver, number, failed = start(), 0, 0
    try:
        for name, report, pictures, todo in checks:
            page = Tried(driver, made(memshim, directory, name, *(report if isinstance(report, list) else [report])), memshim)
            for check in todo:
                number += 1
                label = f"{name}: {(check.__doc__ or 'every view').splitlines()[0]}"
                try:
                    check(page, report, pictures)
                    page.quiet()
                    print(f"ok {number} - {label}", flush=True)
                except Exception as error:  # pylint: disable=broad-except
                    failed += 1
                    print(f"not ok {number} - {label}\n# line {traceback.extract_tb(error.__traceback__)[1].lineno}, {type(error).__name__}: {str(error)[:2000]}", flush=True)
        print(f"1..{number}")
    finally:
        driver.quit()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
