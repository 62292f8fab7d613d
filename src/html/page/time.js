/* time.js - memory over time, by device, with phases and out-of-memory; and who held it at a chosen moment. */

const CHART_HEIGHT = 280, PHASE_ROWS = 8, PHASE_HEIGHT = 13;

/* A chart's columns and one more: the most that was live by another report's line in each stretch of theirs. What
 * that one has beyond their end has its own stretches. */
function over(own, line, series) {
  const [seconds] = own, end = seconds[seconds.length - 1], until = (line.t[line.t.length - 1] + line.bucket) / 1e9;
  const beyond = [...Array.from(line.t, (ns) => ns / 1e9), until].filter((at) => at > end);
  const all = [...seconds, ...beyond];
  let first = 0;
  const most = all.map((from, i) => {
    const to = i + 1 < all.length ? all[i + 1] : from;
    while (first < line.t.length && (line.t[first] + line.bucket) / 1e9 <= from) first++;
    let value = first < line.t.length ? series.live[first] : from <= until ? series.live[line.t.length - 1] : null;
    for (let k = first + 1; k < line.t.length && line.t[k] / 1e9 < to; k++) value = Math.max(value, series.live[k]);
    return value;
  });
  return [all, ...own.slice(1).map((column) => [...column, ...beyond.map(() => null)]), most];
}

class Time {
  constructor(page, place) {
    this.page = page;
    this.report = page.report;
    this.line = this.report.timeline();
    this.charts = [];
    this.place = place;
    if (!this.line.t.length || !this.line.devices.length) {
      put(place, el("p", {}, "The report has no timeline: no device memory was recorded over time."));
      return;
    }
    put(place, el("p", { class: "lead" }, "Drag to zoom, double-click to see all, click a moment to see who held the memory. ",
      "At the ticks below it is known of all. With the keyboard: arrows move, Shift moves further, plus and minus zoom, Enter chooses."));
    const others = page.reports().map(([i, row]) => [String(i), short(row.path, 80)]).filter(([i]) => i !== String(page.at));
    if (others.length) put(place, choice("Over it", [["", "nothing"], ...others], "", (i) => this.lay(i), { id: "over" }));
    this.line.devices.forEach((series, i) => series.row >= 0 && this.chart(series, i));
    this.detail = el("section", { class: "detail", "aria-live": "polite", id: "time-detail" }, "Choose a moment.");
    put(place, this.detail, textTable("the timeline as a table", () => this.table()), this.ooms());
  }

  chart(series, i) {
    const device = this.report.list("devices")[series.row], seconds = Array.from(this.line.t, (ns) => ns / 1e9);
    /* The last bucket lasts as long as the others. */
    const stretch = (column) => [...column, column[column.length - 1] || 0];
    const data = [[...seconds, seconds[seconds.length - 1] + this.line.bucket / 1e9],
      stretch(series.live), stretch(series.reserved), stretch(series.limbo)];
    const holder = el("div", { class: "chart", tabindex: "0", role: "application", id: `chart-${i}`,
      "aria-label": `memory of ${deviceName(device)} over time; arrows move, Enter chooses a moment` });
    put(this.place, el("h3", {}, `${deviceName(device)}  ${clean(device.name)}`), holder);
    const chart = { series, device, holder, data, own: data, at: 0, i };
    this.charts.push(chart);
    this.make(chart);
    holder.addEventListener("keydown", (event) => this.key(chart, event));
    new ResizeObserver(() => this.fit(chart)).observe(holder);
  }

  make(chart) {
    const stepped = uPlot.paths.stepped({ align: 1 }), ink = themeColour("ink"), line = themeColour("line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui" };
    const shown = (label, name, more) => ({ label, stroke: themeColour(name), width: 1.5, paths: stepped, points: { show: false },
      value: (_, value) => (value === null ? "" : sizeText(value)), ...more });
    if (chart.plot) chart.plot.destroy();
    chart.plot = new uPlot({
      width: Math.max(chart.holder.clientWidth, 300), height: CHART_HEIGHT,
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high * 1.08, 1)] } },
      axes: [{ ...axis, space: 80, values: (_, ticks) => ticks.map((tick) => timeText(tick * 1e9)) },
        { ...axis, size: 80, incrs: Array.from({ length: 60 }, (_, i) => 2 ** i), values: (_, ticks) => ticks.map((tick) => sizeText(tick)) }],
      series: [{ label: "after", value: (_, value) => (value === null ? "" : timeText(value * 1e9)) },
        shown("allocated", "live", { fill: `${themeColour("live")}33` }), shown("reserved", "reserved"), shown("pending", "limbo"),
        ...(chart.data.length > 4 ? [shown("allocated over it", "ink", { dash: [5, 3] })] : [])],
      cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      legend: { live: true },
      hooks: { draw: [(plot) => this.marks(chart, plot)], drawClear: [(plot) => this.bands(chart, plot)] },
    }, chart.data, chart.holder);
    chart.plot.over.addEventListener("click", () => {
      const at = chart.plot.cursor.idx;
      if (at !== null && at !== undefined && at <= this.line.t.length) this.choose(chart, at);
    });
  }

  /* Another report's memory over this one's, both from where they begin, on the devices that both have. */
  async lay(i) {
    const other = i === "" ? null : await this.page.read(Number(i)), line = other && other.timeline();
    for (const chart of this.charts) {
      const row = other ? other.deviceOf({ device: chart.device.index, device_api: chart.device.api }) : -1;
      const series = row >= 0 && line.devices.find((one) => one.row === row);
      chart.data = series && line.t.length ? over(chart.own, line, series) : chart.own;
      this.make(chart);
    }
  }

  fit(chart) {
    const width = chart.holder.clientWidth;
    if (width > 0 && width !== chart.plot.width) chart.plot.setSize({ width, height: CHART_HEIGHT });
  }

  resize() {
    this.charts.forEach((chart) => this.fit(chart));
  }

  recolour() {
    this.charts.forEach((chart) => this.make(chart));
  }

  phases() {
    return this.report.list("phases").filter((row) => asNumber(row.last_ns) > asNumber(row.first_ns)).slice(0, PHASE_ROWS);
  }

  /* Phases: a band each, from the first beginning to the last event, behind the lines. */
  bands(chart, plot) {
    const context = plot.ctx, ratio = window.devicePixelRatio || 1, { left, top, width, height } = plot.bbox;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.font = `${10 * ratio}px system-ui`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    this.phases().forEach((phase, i) => {
      const from = plot.valToPos(asNumber(phase.first_ns) / 1e9, "x", true), to = plot.valToPos(asNumber(phase.last_ns) / 1e9, "x", true);
      const hue = OWNER_HUES[(i + 3) % OWNER_HUES.length], y = top + i * PHASE_HEIGHT * ratio;
      context.fillStyle = `hsl(${hue} 60% 50% / 0.06)`;
      context.fillRect(from, top, to - from, height);
      context.fillStyle = `hsl(${hue} 60% 50% / 0.35)`;
      context.fillRect(from, y, Math.max(to - from, ratio), (PHASE_HEIGHT - 2) * ratio);
      context.fillStyle = themeColour("ink");
      const name = short(String(phase.name), 40);
      context.fillText(phase.count > 1 ? `${name} (${phase.count})` : name, Math.max(from, left) + 3 * ratio, y + (PHASE_HEIGHT - 2) / 2 * ratio);
    });
    context.restore();
  }

  /* Out of memory, the peak, the limit and the chosen moment, in front of them. */
  marks(chart, plot) {
    const context = plot.ctx, ratio = window.devicePixelRatio || 1, { left, top, width, height } = plot.bbox;
    const labels = [], upright = (ns, colour, dash, text) => drawUpright(plot, ns, colour, dash, text, labels);
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.lineWidth = ratio;
    context.font = `${10 * ratio}px system-ui`;
    context.textAlign = "left";
    upright(asNumber(chart.device.peak_ns), themeColour("live"), [2, 3], "peak");
    for (const oom of this.report.list("oom"))
      if (this.report.deviceOf(oom) === chart.series.row) upright(asNumber(oom.t_ns), themeColour("limit"), [], "out of memory");
    /* Ticks at the bottom: moments of which it is known who held what. */
    context.strokeStyle = themeColour("ink");
    context.setLineDash([]);
    for (const ns of this.report.column("time.moment")) {
      const x = plot.valToPos(ns / 1e9, "x", true);
      context.beginPath();
      context.moveTo(x, top + height - 6 * ratio);
      context.lineTo(x, top + height);
      context.stroke();
    }
    if (chart.chosen !== undefined) upright(this.line.t[chart.chosen], themeColour("ink"), [], "");
    const limit = this.report.limit(chart.device);
    if (limit > 0) {
      const y = plot.valToPos(limit, "y", true);
      context.strokeStyle = context.fillStyle = themeColour("limit");
      context.setLineDash([6 * ratio, 4 * ratio]);
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(left + width, y);
      context.stroke();
      context.fillText("limit", left + width - 30 * ratio, y - 6 * ratio);
    }
    context.restore();
  }

  key(chart, event) {
    const plot = chart.plot, last = this.line.t.length - 1, step = event.shiftKey ? Math.max(1, Math.round(last / 20)) : 1;
    const to = { ArrowLeft: chart.at - step, ArrowRight: chart.at + step, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      chart.at = Math.min(Math.max(to, 0), last);
      plot.setCursor({ left: plot.valToPos(chart.data[0][chart.at], "x"), top: CHART_HEIGHT / 2 });
    } else if (event.key === "Enter" || event.key === " ") this.choose(chart, chart.at);
    else if (event.key === "+" || event.key === "=") this.zoom(chart, 0.5);
    else if (event.key === "-") this.zoom(chart, 2);
    else if (event.key === "Escape") this.range(chart, chart.data[0][0], chart.data[0][chart.data[0].length - 1]);
    else return;
    event.preventDefault();
  }

  zoom(chart, by) {
    const { min, max } = chart.plot.scales.x, middle = chart.data[0][chart.at], half = (max - min) * by / 2;
    const whole = chart.data[0];
    this.range(chart, Math.max(middle - half, whole[0]), Math.min(middle + half, whole[whole.length - 1]));
  }

  range(chart, min, max) {
    if (max > min) chart.plot.setScale("x", { min, max });
  }

  choose(chart, at) {
    at = Math.min(at, this.line.t.length - 1);
    chart.at = chart.chosen = at;
    chart.plot.redraw(false);
    const from = this.line.t[at], until = from + this.line.bucket, last = at === this.line.t.length - 1;
    const held = heldAt(this.report, chart.series.row, from, until, last);
    fill(this.detail, ...this.held(chart, at, held));
  }

  held(chart, at, held) {
    const report = this.report, from = this.line.t[at];
    const when = held.inside ? "in this stretch" : `the nearest to it, ${timeText(Math.abs(held.ns - from))} ${held.ns < from ? "before" : "after"} it began`;
    const told = {
      peak: `The device's peak, ${when}: what each call site held then.`,
      end: `The end of the record, ${when}: what each call site held then.`,
      oom: `A request for which there was no memory, ${when}: what each call site held then.`,
      moment: `What each call site held after ${timeText(held.ns)}. Of the moments of which the report knows that, this is ${when}.`,
      phase: `The largest peak of the phase ${short(held.name || "", 60)}, ${when}: the call sites that held most then.`,
    }[held.kind];
    const rows = (list) => list.slice(0, 25).map(({ site, bytes: value }) => [bytes(value),
      [swatch(this.page, report.text("site.owner", site)), short(report.text("site.owner", site), 40)], short(report.siteLine(site), 200)]);
    const columns = [["bytes", "right"], ["owner", ""], ["where", "code"]];
    return [el("h3", {}, `${deviceName(chart.device)} after ${timeText(from)}`),
      el("p", {}, "allocated ", bytes(chart.series.live[at], { id: "held-live" }), ", reserved ", bytes(chart.series.reserved[at]), ", pending ",
        bytes(chart.series.limbo[at]), `, at most, in these ${timeText(this.line.bucket)}`),
      el("p", { id: "held-when" }, told),
      table(`Held after ${timeText(held.ns)}`, columns, rows(held.rows), { id: "held" }),
      held.rows.length > 25 && el("p", {}, `and ${held.rows.length - 25} more call sites`)];
  }

  table() {
    const step = Math.max(1, Math.ceil(this.line.t.length / 64)), rows = [];
    this.line.devices.filter((series) => series.row >= 0).forEach((series) => {
      for (let i = 0; i < this.line.t.length; i += step) {
        let most = i;
        for (let k = i; k < Math.min(i + step, this.line.t.length); k++) if (series.live[k] > series.live[most]) most = k;
        rows.push([deviceName(this.report.list("devices")[series.row]), timeText(this.line.t[most]), bytes(series.live[most]),
          bytes(series.reserved[most]), bytes(series.limbo[most])]);
      }
    });
    return table("The most of each stretch", [["device", ""], ["after", "right"], ["allocated", "right"], ["reserved", "right"], ["pending", "right"]], rows);
  }

  ooms() {
    const report = this.report, rows = report.list("oom");
    return rows.length > 0 && [el("h3", {}, "Out of memory"), rows.map((oom) => el("section", { class: "finding error-severity" },
      el("p", {}, el("b", {}, short(oom.api, 80)), " asked for ", oom.requested ? bytes(oom.requested) : short(oom.kind || "memory", 20), ` after ${timeText(oom.t_ns)}`,
        oom.cause ? `; cause: ${short(oom.cause, 40).replace("_", " ")}` : "", "; allocated ", bytes(oom.live), ", ", oom.layer === "tensors" ? `reserved by ${short(oom.api, 40)} ` : "reserved for the pool ", bytes(oom.reserved),
        ", largest free piece ", bytes(oom.largest_free)),
      table("Held most then", [["bytes", "right"], ["where", "code"]], (oom.top_sites || []).map((top) =>
        [bytes(top.bytes), top.line ? short(top.line, 200) : report.rows.has(top.site) ? short(report.siteLine(report.rows.get(top.site)), 200) : `site ${top.site}`])),
      oom.stack_text && lines(oom.stack_text)))];
  }
}
