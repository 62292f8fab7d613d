/* sites.js - every call site: sorted, filtered, with its stack. */

const SITE_COLUMNS = [
  ["At peak", "peak", "bytes"], ["At the end", "live", "bytes"], ["Leaked", "leaked", "bytes"], ["Total", "total", "bytes"],
  ["Count", "count", "allocations"], ["Most", "max_bytes", "bytes"], ["Rounding", "rounding", "bytes"],
];

class Sites {
  constructor(page, place) {
    const report = this.report = page.report;
    const figure = ([title, key, unit]) => ({
      title, kind: "right", width: "5.5rem", by: (row) => report.site(key)[row],
      cell: (row) => (unit === "bytes" ? bytes : number)(exactAt(report.site(key), row)),
    });
    const text = (title, key, width) => ({ title, width, by: (row) => report.text(key, row), cell: (row) => short(report.text(key, row), 80) });
    this.grid = new Grid("call sites", [
      figure(SITE_COLUMNS[0]),
      { title: "Where", kind: "code", width: "minmax(28rem, 3fr)", by: (row) => report.siteLine(row), cell: (row) => short(report.siteLine(row), 160) },
      ...SITE_COLUMNS.slice(1).map(figure), text("Owner", "site.owner", "7rem"), text("Memory", "site.place", "4.5rem"), text("Call", "site.api", "9rem"),
    ], (row) => this.open(row), { id: "sites-grid" });
    this.filter = el("input", { type: "search", id: "sites-filter", placeholder: "function, file, owner or call",
      "aria-label": "filter call sites", oninput: () => this.choose() });
    this.count = el("output", { id: "sites-count" });
    this.detail = el("section", { class: "detail", "aria-live": "polite", id: "sites-detail" }, "Choose a call site to see its stack.");
    this.order = sitesBy(report, report.site("peak"));
    put(place, el("div", { class: "tools" }, el("label", {}, "Filter ", this.filter), this.count), this.grid.element, this.detail);
    this.choose();
  }

  /* Sites any of whose texts, or frames of whose stack, hold what is asked for. */
  choose() {
    const wanted = this.filter.value.trim().toLowerCase(), report = this.report;
    const nodes = wanted ? this.nodesWith(wanted) : null, texts = new Map();
    const holds = (text) => {
      if (!texts.has(text)) texts.set(text, (report.strings[text] || "").toLowerCase().includes(wanted));
      return texts.get(text);
    };
    const rows = !wanted ? this.order : this.order.filter((row) => nodes[report.column("site.node")[row]] ||
      ["line", "owner", "api", "place"].some((key) => holds(report.column(`site.${key}`)[row])));
    fill(this.count, `${exactText(rows.length)} of ${exactText(report.sites.length)} sites, `,
      bytes(sumOf(report.site("peak"), rows)), " at their peaks");
    this.grid.set(rows);
  }

  nodesWith(wanted) {
    const found = matchFrames(this.report, wanted), parent = this.report.column("node.parent");
    const frame = this.report.column("node.frame"), inside = new Uint8Array(parent.length);
    for (let node = 1; node < parent.length; node++) inside[node] = inside[parent[node]] || found[frame[node]];
    return inside;
  }

  open(row) {
    fill(this.detail, ...siteDetail(this.report, row));
  }
}

function stackList(report, row) {
  return el("ol", { class: "stack" }, report.stack(report.column("site.node")[row]).map((frame) => el("li", {}, short(report.frameText(frame), 300))));
}

function siteDetail(report, row) {
  const figure = (key) => exactAt(report.site(key), row), freed = report.site("freed_count")[row];
  return [el("h3", {}, short(report.siteLine(row), 300)),
    el("p", {}, short(report.text("site.api", row), 80), ", ", short(report.text("site.owner", row), 80), ", ", report.text("site.place", row), ": ",
      bytes(figure("peak")), " at the peak, ", bytes(figure("live")), " allocated in ", number(figure("live_count")), " blocks, ",
      bytes(figure("total")), " allocated in ", number(figure("count")), " blocks, of which ", number(figure("freed_count")), " were freed",
      freed > 0 ? ` after ${timeText(report.site("lifetime_ns_sum")[row] / freed)} on average` : "",
      `; first after ${timeText(report.site("first_ns")[row])}, last after ${timeText(report.site("last_ns")[row])}`),
    stackList(report, row)];
}
