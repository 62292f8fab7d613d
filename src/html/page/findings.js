/* findings.js - what to think of it, and what was never freed. */

function drawFinding(report, row) {
  const severity = ["error", "warning", "info"].includes(row.severity) ? row.severity : "info";
  const site = report.rows.get(row.site);
  return el("section", { class: `finding ${severity}-severity` },
    el("p", {}, el("b", {}, `${severity}: `), short(row.message, 600)),
    row.advice && el("p", {}, short(row.advice, 600)),
    el("p", { class: "lead" }, short(row.rule, 60), `, ${short(row.confidence, 20)}`, row.bytes ? [", ", bytes(row.bytes)] : "",
      row.count > 1 ? `, ${exactText(row.count)} times` : ""),
    row.stack_text && el("details", { open: true }, el("summary", {}, "where it happened"), lines(row.stack_text)),
    row.freed_stack_text && el("details", {}, el("summary", {}, "where it was freed"), lines(row.freed_stack_text)),
    site !== undefined && el("details", { open: !row.stack_text }, el("summary", {}, "where it was allocated"), stackList(report, site)));
}

function drawFindings(page, place) {
  const report = page.report, findings = report.list("findings"), count = report.column("leak.site").length;
  put(place, findings.length ? findings.slice(0, 300).map((row) => drawFinding(report, row)) : el("p", {}, "No findings."),
    el("h3", {}, "Never freed"));
  if (!count) {
    put(place, el("p", {}, "Nothing was leaked."));
    return {};
  }
  const of = (name) => report.column(`leak.${name}`), rows = Array.from({ length: count }, (_, i) => i);
  const words = { held: "held to the end", interrupted: "held when it was ended", context: "gone with its context", live: "not freed so far" };
  const leakClass = (i) => {
    const told = report.text("leak.class", i), pattern = report.text("leak.pattern", i);
    return ["suppressed", "cache"].includes(told) || !pattern ? told : words[pattern] || pattern;
  };
  const site = (i) => report.rows.get(of("site")[i]);
  const line = (i) => (site(i) === undefined ? "" : report.siteLine(site(i)));
  const detail = el("section", { class: "detail", "aria-live": "polite", id: "leak-detail" }, "Choose a leak to see its stack.");
  const figure = (title, name, show) => ({ title, kind: "right", width: "7rem", by: (i) => of(name)[i], cell: (i) => show(exactAt(of(name), i)) });
  const grid = new Grid("leaks", [figure("Bytes", "bytes", bytes), figure("Blocks", "count", number),
    { title: "Class", width: "9rem", by: leakClass, cell: (i) => short(leakClass(i), 24) },
    figure("Oldest", "first_ns", timeText), figure("Youngest", "last_ns", timeText),
    { title: "Where", kind: "code", width: "minmax(16rem, 3fr)", by: line, cell: (i) => short(line(i), 160) },
  ], (i) => site(i) !== undefined && fill(detail, ...siteDetail(report, site(i))), { id: "leaks-grid" });
  put(place, el("p", {}, bytes(report.leaked(), { id: "leaked" }), " were leaked. Suppressed leaks and caches of frameworks are in the list, and in no sum."),
    grid.element, detail);
  const order = ["growing", "lost", "held to the end"], place_of = (i) => (order.includes(leakClass(i)) ? order.indexOf(leakClass(i)) : 9);
  grid.set(rows.sort((a, b) => place_of(a) - place_of(b) || of("bytes")[b] - of("bytes")[a] || a - b));
  return { grid };
}
