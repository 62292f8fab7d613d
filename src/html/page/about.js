/* about.js - the process, its settings, what could be seen, and what it cost. */

function facts(caption, object, attributes) {
  const rows = Object.entries(object || {}).filter(([, value]) => value !== undefined && (value === null || typeof value !== "object" || (Array.isArray(value) && value.length)));
  const text = (value) => (Array.isArray(value) ? value.map((one) => (typeof one === "object" ? JSON.stringify(one) : String(one))).join(" ") : String(value));
  return table(caption, [["", ""], ["", "code"]], rows.map(([key, value]) => [key.replace(/_/g, " "), short(text(value), 1000)]), attributes);
}

function drawAbout(page, place) {
  const report = page.report, head = report.head, coverage = head.coverage || {}, overhead = head.overhead || {};
  const blind = Array.isArray(coverage.blind_spots) ? coverage.blind_spots : [];
  put(place,
    facts("Process", { ...head.run, recorded_by: `${(head.tool || {}).name} ${(head.tool || {}).version}`, schema: head.schema_version }, { id: "process" }),
    facts("Coverage", { ...(coverage.routes || {}), ...coverage, blind_spots: undefined }, { id: "coverage" }),
    el("h3", {}, "What could not be seen"),
    blind.length ? el("ul", { id: "blind" }, blind.slice(0, 500).map((text) => el("li", {}, short(String(text), 400)))) : el("p", {}, "Nothing that memshim knows of."),
    facts("What it cost", { ...overhead, report_time: timeText(overhead.report_ns) }, { id: "overhead" }),
    report.list("diagnostics").length > 0 && [el("h3", {}, "Diagnostics"), el("ul", {}, report.list("diagnostics").slice(0, 500).map((text) => el("li", {}, short(String(text), 400))))],
    table("Functions that were called", [["function", "code"], ["calls", "right"], ["bytes", "right"], ["failures", "right"], ["served", "right"], ["followed", "right"]],
      report.list("apis").map((row) => [short(String(row.name), 80), number(row.calls || 0), bytes(row.bytes || 0), number(row.failures || 0), number(row.served || 0), number(row.followed || 0)]), { id: "apis" }),
    table("Settings", [["variable", "code"], ["value", "code"], ["from", ""]], report.list("config").map((row) => [short(String(row.name), 80), short(String(row.value), 300), row.source]), { id: "config" }),
    table("Modules", [["file", "code"], ["kind", ""], ["build-id", "code"]], report.list("modules").slice(0, 500).map((row) =>
      [short(String(row.path), 200), row.owner, short(String(row.build_id || ""), 48)]), { id: "modules" }));
  return {};
}
