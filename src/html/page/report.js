/* report.js - a report as the views ask for it. Pure. */

const VALUES = [
  { key: "peak", title: "At peak", unit: "bytes" },
  { key: "live", title: "Allocated at the end", unit: "bytes" },
  { key: "leaked", title: "Leaked", unit: "bytes" },
  { key: "total", title: "Allocated in total", unit: "bytes" },
  { key: "count", title: "Allocations", unit: "allocations" },
  { key: "rounding", title: "Rounding", unit: "bytes" },
];

function valueText(value, unit) {
  return unit === "bytes" ? sizeText(value) : exactText(value);
}

function deviceName(device) {
  return `${device.api || "cuda"} ${device.index}`;
}

function sumOf(column, among) {
  let sum = 0;
  if (among) for (const i of among) sum += column[i];
  else for (let i = 0; i < column.length; i++) sum += column[i];
  return sum;
}

/* All sites in the order of a column, most first, equal ones by row. */
function sitesBy(report, column) {
  return Array.from(report.sites.keys()).sort((a, b) => column[b] - column[a] || a - b);
}

class Report {
  constructor(unpacked) {
    this.head = unpacked.head;
    this.columns = unpacked.columns;
    this.strings = unpacked.head.strings || [];
    this.sites = this.columns["site.id"];
    this.rows = new Map();
    this.sites.forEach((id, row) => this.rows.has(id) || this.rows.set(id, row));
  }

  list(key) {
    return Array.isArray(this.head[key]) ? this.head[key] : [];
  }

  column(name) {
    return this.columns[name] || new Float64Array(0);
  }

  text(name, row) {
    return this.strings[this.column(name)[row]] || "";
  }

  site(key) {
    return this.column(`site.${key}`);
  }

  /* A site's line of the program's own, else what stands for it. */
  siteLine(row) {
    return this.text("site.line", row) || `${this.text("site.api", row)} without a stack`;
  }

  frameText(frame) {
    const file = this.text("frame.file", frame), line = this.column("frame.line")[frame];
    const name = this.text("frame.name", frame);
    return file ? `${name} at ${file}${line ? `:${line}` : ""}` : name;
  }

  /* The frames of a node, innermost first. */
  stack(node) {
    const frames = [], parent = this.column("node.parent"), frame = this.column("node.frame");
    for (; node > 0; node = parent[node]) frames.push(frame[node]);
    return frames;
  }

  timeline() {
    const told = this.head.timeline || { bucket_ns: 0, devices: [] };
    return {
      bucket: asNumber(told.bucket_ns),
      t: this.column("time.t"),
      devices: told.devices.map((row, i) => ({
        row, live: this.column(`time.${i}.live`), reserved: this.column(`time.${i}.reserved`),
        limbo: this.column(`time.${i}.limbo`),
      })),
    };
  }

  /* The same device as a row of any list: the row of devices[], -1 for none. */
  deviceOf(row) {
    return this.list("devices").findIndex((device) => device.index === row.device &&
      (device.api || "cuda") === (row.device_api || "cuda"));
  }

  limit(device) {
    const row = this.list("config").find((one) => one.name === "MEMSHIM_LIMIT");
    const bytes = row && row.value !== "none" ? sizeOf(row.value, asNumber(device.total_bytes)) : NaN;
    return bytes > 0 ? bytes : NaN;
  }

  leaked() {
    return sumOf(this.site("leaked"));
  }
}
