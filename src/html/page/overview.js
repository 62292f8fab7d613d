/* overview.js - the first view, behind its first screen (first.js): each device, whose memory it was, the driver's overhead. */

function bar(parts, whole, label) {
  const strip = el("div", { class: "strip", role: "img", "aria-label": label });
  for (const part of parts) {
    const piece = el("span", { title: `${part.name}: ${sizeText(part.value)}` });
    piece.style.width = `${whole > 0 ? 100 * part.value / whole : 0}%`;
    piece.style.background = part.colour;
    strip.append(piece);
  }
  return strip;
}

function deviceCard(page, device) {
  const report = page.report, total = asNumber(device.total_bytes);
  const fact = (name, value) => [el("dt", {}, name), el("dd", {}, value)];
  return el("section", { class: "card" },
    el("h3", {}, `${deviceName(device)}  `, el("small", {}, clean(device.name))),
    bar([{ name: "peak allocated", value: asNumber(device.peak_live_bytes), colour: themeColour("live") }],
      total, `peak allocated ${sizeText(device.peak_live_bytes)} of ${sizeText(total)}`),
    el("dl", {},
      fact("peak allocated", [bytes(device.peak_live_bytes, { "data-fact": "peak_live_bytes" }),
        ` after ${timeText(device.peak_ns)}`, total ? `, ${shareText(asNumber(device.peak_live_bytes), total)} of the device` : ""]),
      fact("allocated at exit", [bytes(device.live_bytes, { "data-fact": "live_bytes" }), " in ", blockCount(device.live_count)]),
      fact("reserved at most", bytes(reservedMost(device), { "data-fact": "peak_held_bytes" })),
      fact("allocated in total", [bytes(device.allocated_bytes || 0, { "data-fact": "allocated_bytes" }), " in ",
        blockCount(device.allocated_count)]),
      !Number.isNaN(report.limit(device)) && fact("limit", bytes(report.limit(device))),
      device.untracked_bytes !== undefined && fact("not seen by memshim", bytes(device.untracked_bytes))));
}

function ownersTable(page) {
  const rows = page.report.list("owners");
  if (!rows.length) return el("p", {}, "No memory was recorded.");
  const whole = new Map();
  const place = (row) => row.memory === "device" ? `${row.device_api || "cuda"} ${row.device}` : row.memory;
  for (const row of rows) whole.set(place(row), (whole.get(place(row)) || 0) + asNumber(row.at_peak_bytes));
  const shown = rows.slice(0, 30);
  return [table("Held by", [["owner", ""], ["memory", ""], ["peak allocated", "right"], ["share", "right"],
    ["allocated at exit", "right"], ["allocated", "right"], ["sites", "right"]],
  shown.map((row) => [[swatch(page, row.owner), short(row.owner, 60)], place(row), bytes(row.at_peak_bytes),
    shareText(asNumber(row.at_peak_bytes), whole.get(place(row))), bytes(row.live_bytes), bytes(row.total_bytes),
    number(row.sites)]), { id: "owners" }),
  rows.length > shown.length && el("p", {}, `and ${rows.length - shown.length} more`)];
}

/* balances[]: the words of memshim owners. */
const TERMS = [["requested", "allocated, from the pool"], ["rounding", "rounding"], ["limbo", "pending"], ["cached", "inactive, in whole segments"],
  ["stranded", "inactive, between blocks (fragmentation)"], ["pinned", "shared"], ["followed", "allocated, from the driver"],
  ["contexts", "contexts and modules"], ["untracked", "untracked: others', or nobody tells"]];

function balanceTable(page) {
  const rows = page.report.list("balances").filter((row) => row.moment === "peak");
  const label = (row, key) => (key === "contexts" && asNumber(row.contexts_inferred) > 0 ? ", at most: others' that began meanwhile may be in it" : "");
  const line = (row, [key, words]) => [deviceName({ index: row.device, api: row.device_api || "cuda" }), words + label(row, key), bytes(row[key]),
    shareText(asNumber(row[key]), asNumber(row.in_use_bytes))];
  return rows.length > 0 && table(`In use on the device at the moment when most was${rows.map((row) => `, ${timeText(row.t_ns)}`).slice(0, 1)}: `
    + "other figures of this page are of the peak allocated, which may be another moment", [["device", ""], ["held by", ""], ["bytes", "right"],
    ["share", "right"]],
  rows.flatMap((row) => [...TERMS.filter(([key]) => asNumber(row[key]) > 0).map((term) => line(row, term)),
    line(row, ["in_use_bytes", `altogether (${row.confidence === "exact" ? "exact" : "inferred"})`])]), { id: "balance" });
}

/* What PyTorch's own settings would have reserved, as memshim html found by the run's trace: as it ran, then least first. */
function whatIfTable(page) {
  const told = page.report.head.what_if, ways = told ? told.ways : [], had = asNumber(told && told.reserved_bytes);
  const change = (way) => (asNumber(way.reserved_bytes) === had ? "" : asNumber(way.reserved_bytes) < had
    ? [bytes(had - asNumber(way.reserved_bytes)), " less"] : [bytes(asNumber(way.reserved_bytes) - had), " more"]);
  const rows = [...ways.slice(0, 1), ...ways.slice(1).sort((a, b) => asNumber(a.reserved_bytes) - asNumber(b.reserved_bytes))];
  return ways.length > 0 && table(`What if: reserved at the peak by PyTorch's settings (PYTORCH_ALLOC_CONF), by the run's trace; it had ${sizeText(had)}`,
    [["setting", "code"], ["reserved", "right"], ["", "right"]],
    rows.map((way) => [short(way.settings || "as it comes", 120), bytes(way.reserved_bytes), change(way)]), { id: "what-if" });
}

function contextsTable(page) {
  const rows = page.report.list("contexts"), shown = rows.slice(0, 30);
  return rows.length > 0 && [table("Driver overhead", [["kind", ""], ["device", ""], ["now", "right"], ["ever", "right"],
    ["others' meanwhile", "right"], ["times", "right"], ["first touched by", "code"]],
  shown.map((row) => [short(row.kind, 20), deviceName({ index: row.device, api: row.device_api || "cuda" }), bytes(row.bytes), bytes(row.total_bytes),
    row.others_bytes ? bytes(row.others_bytes) : row.confidence === "inferred" ? "may be in it" : "none",
    number(row.total_count), short(chainText(row.stack_text) || row.api || "", 400)]), { id: "contexts" }),
  rows.length > shown.length && el("p", {}, `and ${rows.length - shown.length} more`)];
}

function swatch(page, owner) {
  const piece = el("i", { class: "swatch", "aria-hidden": "true" });
  piece.style.background = page.colours.of(owner, isDark());
  return piece;
}

/* What to look at next, most pressing first: [text, view]. */
function nextSteps(report) {
  const steps = [], oom = report.list("oom");
  const worst = report.list("findings").filter((row) => row.severity !== "info");
  if (oom.length)
    steps.push([`Memory ran out ${oom.length === 1 ? "once" : `${oom.length} times`}: see when, and who held it then`, "time"]);
  const grew = leaksOf(report, "growing", "lost").reduce((sum, i) => sum + report.column("leak.bytes")[i], 0);
  if (grew > 0) steps.push([`${sizeText(grew)} grew or were lost: see which call sites`, "findings"]);
  if (worst.length) steps.push([`${worst.length} finding${worst.length === 1 ? "" : "s"} with advice`, "findings"]);
  for (const device of report.list("devices")) {
    const beyond = asNumber(device.peak_reserved_bytes) - asNumber(device.peak_live_bytes);
    if (beyond > asNumber(device.peak_live_bytes) / 4 && beyond > 64 * 1024 ** 2)
      steps.push([`${report.head.layer === "tensors" ? "The cache on" : "The pool of"} ${deviceName(device)} had ${sizeText(beyond)} more than was ever live: see whose blocks strand it`, "segments"]);
  }
  if (report.sites.length) steps.push(["See whose stacks held the peak", "flame"]);
  return steps;
}

function topSites(page) {
  const report = page.report, peak = report.site("peak");
  const top = sitesBy(report, peak).slice(0, 10).filter((row) => peak[row] > 0);
  return table("Held the peak, by call site", [["peak allocated", "right"], ["owner", ""], ["memory", ""], ["where", "code"]],
    top.map((row) => [bytes(exactAt(peak, row)), [swatch(page, report.text("site.owner", row)), short(report.text("site.owner", row), 40)],
      report.text("site.place", row), short(report.siteLine(row), 200)]), { id: "top-sites" });
}

function drawOverview(page, place) {
  const report = page.report, run = report.head.run || {};
  const leaked = report.leaked(), findings = report.list("findings");
  const view = { segments: "a framework's cache asked for these blocks, so call sites are those of its segments; memshim run --see-through has it ask for each tensor",
    mixed: "a framework's cache asked for some of these blocks", unknown: "some allocators' functions have no names here" }[run.view];
  put(place,
    el("p", { class: "lead", id: "run-line" }, short((run.argv || []).map(String).join(" "), 200), " on ", short(run.host || "?", 60),
      `, process ${run.pid}`, run.rank !== undefined ? `, rank ${run.rank}` : "",
      run.end_reason === "running" ? ", still running" : `, ended by ${short(run.end_reason || "?", 20)}`,
      ` after ${timeText(asNumber(run.end_unix_ns) - asNumber(run.start_unix_ns))}`),
    run.complete === false && el("p", { class: "warning" }, "The record could not be read whole: sums may be off."),
    report.head.layer && el("p", { class: "lead", id: "layer-line" }, report.head.layer === "tensors"
      ? `These are the tensors that ${short(report.head.heaps, 120)} gave; "Shown" above has the blocks in which they lie.`
      : "These are the blocks that the vendor gave; \"Shown\" above has the tensors in them."),
    !report.head.layer && view && el("p", { class: "warning" }, view),
    report.head.job && jobLine(report.head.job),
    report.head.job && outlierLine(report.head.job));
  drawFirst(page, place);
  put(place, page.reports().length > 1 && processTable(page),
    report.head.job && jobTables(report.head.job),
    el("h3", {}, "Devices"),
    el("div", { class: "cards" }, report.list("devices").map((device) => deviceCard(page, device)),
      el("section", { class: "card" }, el("h3", {}, "Leaks and findings"), el("dl", {},
        el("dt", {}, "never freed"), el("dd", {}, bytes(leaked, { "data-fact": "leaked" })),
        el("dt", {}, "findings"), el("dd", {}, number(findings.length, { "data-fact": "findings" })),
        el("dt", {}, "out of memory"), el("dd", {}, number(report.list("oom").length, { "data-fact": "oom" })),
        el("dt", {}, "call sites"), el("dd", {}, number(report.sites.length, { "data-fact": "sites" }))))),
    nextSteps(report).length > 1 && [el("h3", {}, "And then"),
      el("ul", { class: "next" }, nextSteps(report).slice(1).map(([text, view]) => el("li", {}, button(text, () => page.show(view), { class: "link" }))))],
    ownersTable(page), topSites(page), whatIfTable(page), balanceTable(page), contextsTable(page));
}

/* Of how many processes the report is, before anything that is one's. */
function jobLine(job) {
  return el("p", { id: "job-line" }, el("b", {}, number(job.processes), " processes"), " were merged; but for the tables of all of them the page is of the fullest, ",
    short(job.shown, 80), ".");
}

/* Who of a job stands out, first of all: its figure, its line. */
function outlierLine(job) {
  const row = (job.outliers || [])[0];
  return row && el("p", { class: "warning", id: "first-outlier" }, el("b", {}, short(row.who, 80)), ` stands out: ${short(row.figure, 30)} `, bytes(row.value),
    ", where its group's median is ", bytes(row.median), row.site ? [", by ", el("span", { class: "code" }, short(row.site, 200))] : "");
}

/* Of a job report: what its processes had, and who stands out. */
function jobTables(job) {
  const tableOf = (id, caption, what, rows, found) => (rows || []).length > 0 && [
    table(caption, [[what, ""], ["least", "right"], ["median", "right"], ["most", "right"], ["who", "who"]],
      rows.map((row) => [short(row.name, 80), bytes(row.min), bytes(row.median), bytes(row.max), row.min === row.max ? "all alike" : short(row.who, 80)]), { id }),
    found > rows.length && el("p", {}, `and ${found - rows.length} more`)];
  const outliers = job.outliers || [];
  return el("section", { id: "job" },
    tableOf("job-figures", "Of each process", "figure", job.figures, 0),
    tableOf("job-owners", "At the peak of a device, by owner", "owner", job.owners, asNumber(job.owners_found)),
    tableOf("job-phases", "Largest peak, by phase", "phase", job.phases, asNumber(job.phases_found)),
    outliers.length > 0 && table("Who stands out", [["who", "who"], ["figure", ""], ["value", "right"], ["its group's median", "right"], ["by", "code"]],
      outliers.map((row) => [short(row.who, 80), short(row.figure, 30), bytes(row.value), bytes(row.median), short(row.site, 200)]), { id: "job-outliers" }),
    asNumber(job.outliers_found) > outliers.length && el("p", {}, `and ${asNumber(job.outliers_found) - outliers.length} more`));
}

function processTable(page) {
  return table("Processes", [["report", ""], ["rank", "right"], ["peak allocated on a device", "right"], ["reserved at most on a device", "right"], ["never freed", "right"]],
    page.reports().slice(0, 500).map(([i, row]) => [button(short(row.path, 80), () => page.open(i), { class: "link" }),
      row.rank === undefined ? "" : String(row.rank), bytes(row.peak_live_bytes), bytes(row.peak_held_bytes), bytes(row.leaked_bytes)]),
    { id: "processes" });
}
