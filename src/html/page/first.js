/* first.js - the first screen: memory over time, who held the peak, what grew, and the one thing to do next. */

const HOLDERS_SHOWN = 6, GREW_SHOWN = 4, SCALE_MOST = 4; /* the device is in the picture if it is no more than so many times as much */

/* A site's line, without what only compilers care for. */
function plainLine(report, site) {
  return report.siteLine(site).replace(/ \[inlined\]/g, "");
}

/* The device that was fullest, by bytes. */
function fullestDevice(report) {
  const devices = report.list("devices");
  return devices.reduce((best, device, i) => (asNumber(device.peak_live_bytes) > asNumber(devices[best].peak_live_bytes) ? i : best), 0);
}

/* Allocated, reserved and what the device has, in a picture that is only looked at: the view of time has the rest. */
class FirstChart {
  constructor(page, at, place) {
    this.page = page;
    this.at = at;
    this.holder = el("div", { class: "chart", id: "first-chart", role: "img", tabindex: "0",
      "aria-label": `memory of ${deviceName(page.report.list("devices")[at])} over time: the view Memory over time has it as a table` });
    this.holder.addEventListener("click", () => page.show("time"));
    this.holder.addEventListener("keydown", (event) => event.key === "Enter" && page.show("time"));
    put(place, this.holder);
    new ResizeObserver(() => this.fit()).observe(this.holder);
  }

  data() {
    const report = this.page.report, line = report.timeline(), series = line.devices.find((one) => one.row === this.at);
    if (!series || !line.t.length) return null;
    const seconds = Array.from(line.t, (ns) => ns / 1e9), stretch = (column) => [...column, column[column.length - 1] || 0];
    const total = asNumber(report.list("devices")[this.at].total_bytes);
    return [[...seconds, seconds[seconds.length - 1] + line.bucket / 1e9], stretch(series.live), stretch(series.reserved),
      Array(seconds.length + 1).fill(total || null)];
  }

  make() {
    const data = this.data();
    if (this.plot) this.plot.destroy();
    if (!data) {
      fill(this.holder, el("p", {}, "The report has no timeline: no device memory was recorded over time."));
      return;
    }
    const ink = themeColour("ink"), line = themeColour("line"), stepped = uPlot.paths.stepped({ align: 1 });
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui" };
    const shown = (label, name, more) => ({ label, stroke: themeColour(name), width: 1.5, paths: stepped, points: { show: false }, ...more });
    const most = Math.max(...data[1], ...data[2]), total = data[3][0] || 0;
    /* A device that is nearly empty would press its own lines flat. */
    const top = total <= SCALE_MOST * most ? Math.max(total, most) * 1.05 : Math.max(most * 1.15, 1);
    this.plot = new uPlot({
      width: Math.max(this.holder.clientWidth, 260), height: this.holder.clientHeight,
      scales: { x: { time: false }, y: { range: () => [0, top] } },
      axes: [{ ...axis, space: 80, values: (_, ticks) => ticks.map((tick) => timeText(tick * 1e9)) },
        { ...axis, size: 76, incrs: Array.from({ length: 60 }, (_, i) => 2 ** i), values: (_, ticks) => ticks.map((tick) => sizeText(tick)) }],
      series: [{}, shown("allocated", "live", { fill: `${themeColour("live")}33` }), shown("reserved", "reserved"),
        shown("device total", "limit", { dash: [6, 4] })],
      cursor: { show: false }, legend: { show: false },
      hooks: { draw: [(plot) => this.marks(plot)] },
    }, data, this.holder);
  }

  /* The peak, and each time there was no memory. */
  marks(plot) {
    const report = this.page.report, device = report.list("devices")[this.at], labels = [];
    drawUpright(plot, asNumber(device.peak_ns), themeColour("live"), [2, 3], "peak", labels);
    for (const oom of report.list("oom"))
      if (report.deviceOf(oom) === this.at) drawUpright(plot, asNumber(oom.t_ns), themeColour("limit"), [], "out of memory", labels);
  }

  fit() {
    const width = this.holder.clientWidth, height = this.holder.clientHeight;
    if (width <= 0 || height <= 0) return;
    if (!this.plot) this.make();
    else if (this.plot.width !== width || this.plot.height !== height) this.plot.setSize({ width, height });
  }
}

function key(name, text) {
  const piece = el("i", { class: "swatch", "aria-hidden": "true" });
  piece.style.background = themeColour(name);
  return el("span", {}, piece, text);
}

function firstPicture(page, at) {
  const device = page.report.list("devices")[at], total = asNumber(device.total_bytes), peak = asNumber(device.peak_live_bytes);
  const place = el("section", { class: "card", id: "first-picture" },
    el("h3", {}, "Memory over time  ", el("small", {}, `${deviceName(device)}  ${clean(device.name)}`)),
    el("p", { class: "headline" }, el("b", {}, sizeText(peak)), ` peak allocated after ${timeText(device.peak_ns)}`,
      total ? `, ${shareText(peak, total)} of the device's ${sizeText(total)}` : ""),
    el("div", { class: "legend" }, key("live", "allocated"), key("reserved", "reserved"), key("limit", `device total ${sizeText(total)}${total > SCALE_MOST * Math.max(peak, asNumber(reservedMost(device))) ? ", beyond the picture" : ""}`)));
  const chart = new FirstChart(page, at, place);
  return { place, chart };
}

/* Call sites that held the device's peak, as bars; what the others held is in the last one. */
function firstHolders(page, at) {
  const report = page.report, rows = heldThen(report, at, { kind: "peak" }), whole = rows.reduce((sum, row) => sum + row.bytes, 0);
  const rest = rows.slice(HOLDERS_SHOWN).reduce((sum, row) => sum + row.bytes, 0), left = rows.length - HOLDERS_SHOWN;
  const line = (value, colour, text) => {
    const piece = el("span", {});
    piece.style.width = `${whole > 0 ? 100 * value / whole : 0}%`;
    piece.style.background = colour;
    return el("li", {}, el("div", { class: "holder" }, bytes(value), el("span", {}, shareText(value, whole))), el("div", { class: "strip" }, piece),
      el("div", { class: "code" }, text));
  };
  return el("section", { class: "card", id: "first-holders" }, el("h3", {}, "Held the peak"),
    rows.length ? el("ol", { class: "holders" },
      rows.slice(0, HOLDERS_SHOWN).map(({ site, bytes: value }) => line(value, page.colours.of(report.text("site.owner", site), isDark()),
        [short(plainLine(report, site), 120), report.text("site.owner", site) === "program" ? "" : `, ${short(report.text("site.owner", site), 40)}`])),
      left > 0 && line(rest, themeColour("unknown"), `${left} more call site${left === 1 ? "" : "s"}`))
      : el("p", {}, "No device memory was allocated."));
}

/* Rows of leaks[] of these classes, most bytes first. */
function leaksOf(report, ...patterns) {
  const bytesOf = report.column("leak.bytes");
  return Array.from(bytesOf.keys()).filter((i) => !["suppressed", "cache"].includes(report.text("leak.class", i)) &&
    patterns.includes(report.text("leak.pattern", i))).sort((a, b) => bytesOf[b] - bytesOf[a] || a - b);
}

function firstGrew(page) {
  const report = page.report, rows = [...leaksOf(report, "growing"), ...leaksOf(report, "lost")], held = leaksOf(report, "held");
  const sum = (list) => list.reduce((all, i) => all + report.column("leak.bytes")[i], 0);
  const line = (i) => report.rows.get(report.column("leak.site")[i]), grown = report.list("findings").filter((row) => row.rule === "growth");
  const others = [["interrupted", "held when it was ended"], ["live", "not freed so far"], ["context", "gone with its context"]]
    .map(([pattern, text]) => [sum(leaksOf(report, pattern)), text]).filter(([value]) => value > 0);
  return el("section", { class: "card", id: "first-grew" }, el("h3", {}, "What grew"),
    rows.length ? el("ul", { class: "plain" }, rows.slice(0, GREW_SHOWN).map((i) => el("li", {}, bytes(exactAt(report.column("leak.bytes"), i)),
      ` ${report.text("leak.pattern", i)}: `, el("span", { class: "code" }, line(i) === undefined ? "?" : short(plainLine(report, line(i)), 160)))),
    rows.length > GREW_SHOWN && el("li", {}, `and ${rows.length - GREW_SHOWN} more`))
      : grown.length ? el("ul", { class: "plain" }, grown.slice(0, GREW_SHOWN).map((row) => el("li", {}, short(row.message, 300))))
        : el("p", {}, "Nothing grew, and nothing was lost."),
    held.length > 0 && el("p", { class: "lead" }, bytes(sum(held)), ` held to the end at ${held.length} call site${held.length === 1 ? "" : "s"}`),
    others.map(([value, text]) => el("p", { class: "lead" }, bytes(value), ` ${text}`)));
}

/* What ended the program, or kept it from what it wanted. */
function firstOom(page) {
  const report = page.report, rows = report.list("oom"), oom = rows[rows.length - 1];
  if (!oom) return null;
  const held = (oom.top_sites || []).filter((top) => top.line || report.rows.has(top.site)).slice(0, 2);
  return el("section", { class: "finding error-severity", id: "first-oom" },
    el("p", {}, el("b", {}, "Out of memory: "), short(oom.api, 80), " asked for ", oom.requested ? bytes(oom.requested) : short(oom.kind || "memory", 20),
      ` after ${timeText(oom.t_ns)}`, oom.stack_text ? [" in ", el("span", { class: "code" }, short(firstLine(oom.stack_text).replace(/ \[inlined\]/g, ""), 160))] : "",
      rows.length > 1 ? `, the last of ${rows.length} times` : ""),
    held.length > 0 && el("p", {}, "held most then: ", held.map((top, i) => [i ? "; " : "", bytes(top.bytes), " by ",
      el("span", { class: "code" }, short(top.line || plainLine(report, report.rows.get(top.site)), 120))])));
}

/* Pictures are made when their place has a width. */
function drawFirst(page, place) {
  const report = page.report, at = fullestDevice(report), devices = report.list("devices"), steps = nextSteps(report);
  put(place, firstOom(page));
  if (!devices.length) return;
  const { place: picture, chart } = firstPicture(page, at);
  put(place, el("div", { class: "hero" }, picture, firstHolders(page, at)),
    el("div", { class: "hero" }, firstGrew(page), el("section", { class: "card", id: "first-next" }, el("h3", {}, "What to do next"),
      steps.length ? el("p", {}, button(steps[0][0], () => page.show(steps[0][1]), { class: "link", id: "next" })) : el("p", {}, "Nothing is wrong."),
      devices.length > 1 && el("p", { class: "lead" }, `Of ${devices.length} devices this is the fullest; the others are below.`))));
  chart.fit();
}
