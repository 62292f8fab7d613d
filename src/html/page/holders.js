/* holders.js - what segments are used for, whose blocks strand the rest, and who held memory at a moment. Pure. */

const USES = ["live", "rounding", "limbo", "pinned", "stranded", "cached", "unknown"];

/* Of each segment: bytes by use, live blocks, and what is free between them. */
function segmentUses(report) {
  const first = report.column("segment.first"), bytes = report.column("block.bytes");
  const requested = report.column("block.requested"), state = report.column("block.state");
  const names = report.strings, rows = [];
  for (let i = 0; i < report.column("segment.bytes").length; i++) {
    const row = { live: 0, rounding: 0, limbo: 0, pinned: 0, free: 0, unknown: 0, blocks: 0 };
    for (let b = first[i]; b < first[i + 1]; b++) {
      const use = names[state[b]];
      if (use === "live") {
        const asked = Math.min(Math.max(requested[b], 0), bytes[b]);
        row.live += asked;
        row.rounding += bytes[b] - asked;
        row.blocks++;
      } else row[use in row && use !== "blocks" ? use : "free"] += bytes[b];
    }
    row.stranded = row.blocks ? row.free + row.unknown : 0;
    rows.push(row);
  }
  return rows;
}

/* The call sites whose blocks lie in segments that are partly free, in proportion to what they hold there;
 * as `memshim frag` tells it. Of one row of devices[]. */
function holdersOf(report, device, uses) {
  const first = report.column("segment.first"), of = report.column("segment.device");
  const site = report.column("block.site"), state = report.column("block.state");
  const requested = report.column("block.requested"), holders = new Map();
  for (let i = 0; i < uses.length; i++) {
    if (of[i] !== device || !uses[i].stranded || report.text("segment.tier", i) === "followed") continue;
    const seen = new Set();
    for (let b = first[i]; b < first[i + 1]; b++) {
      if (report.strings[state[b]] !== "live" || site[b] < 0) continue;
      const row = holders.get(site[b]) || { site: site[b], stranded: 0, live: 0, segments: 0 };
      row.stranded += uses[i].live > 0 ? Math.floor(uses[i].stranded * requested[b] / uses[i].live) : 0;
      row.live += requested[b];
      row.segments += seen.has(site[b]) ? 0 : 1;
      seen.add(site[b]);
      holders.set(site[b], row);
    }
  }
  return [...holders.values()].sort((a, b) => b.stranded - a.stranded || a.site - b.site);
}

/* Who held a device's memory at a moment, as far as the report tells: at its peak and at the end every site
 * does exactly; in between the blocks that are live to the end are known to have been there, and for the rest
 * the sites that had begun by then, with no more than they ever held.
 * {exact, rows: [{site, bytes}], rest, maybe: [{site, bytes}]} */
function heldAt(report, device, ns, until, live, atEnd) {
  const peak = asNumber(report.list("devices")[device].peak_ns);
  const of = report.site("device"), rows = (column) => {
    const list = [];
    for (let i = 0; i < of.length; i++) if (of[i] === device && column[i] > 0) list.push({ site: i, bytes: column[i] });
    return list.sort((a, b) => b.bytes - a.bytes || a.site - b.site);
  };
  if (peak >= ns && peak < until) return { exact: "peak", rows: rows(report.site("peak")), rest: 0, maybe: [] };
  if (atEnd) return { exact: "end", rows: rows(report.site("live")), rest: 0, maybe: [] };
  const known = survivorsAt(report, device, until);
  const sum = sumOf(Float64Array.from(known.values()));
  const maybe = [];
  for (let i = 0; i < of.length; i++)
    if (of[i] === device && report.site("first_ns")[i] < until && report.site("freed_count")[i] > 0)
      maybe.push({ site: i, bytes: Math.min(report.site("max_bytes")[i], Math.max(live - sum, 0)) });
  return {
    exact: "",
    rows: [...known].map(([site, bytes]) => ({ site, bytes })).sort((a, b) => b.bytes - a.bytes || a.site - b.site),
    rest: Math.max(live - sum, 0),
    maybe: maybe.sort((a, b) => b.bytes - a.bytes || a.site - b.site),
  };
}

/* Bytes by row of sites[] of the blocks that are live at the end and were there before `until`. */
function survivorsAt(report, device, until) {
  const first = report.column("segment.first"), of = report.column("segment.device"), known = new Map();
  const born = report.column("block.born_ns"), site = report.column("block.site");
  const bytes = report.column("block.bytes"), state = report.column("block.state");
  const inPool = (i) => report.text("segment.tier", i) !== "followed";
  for (let i = 0; i < of.length; i++) {
    if (of[i] !== device) continue;
    for (let b = first[i]; b < first[i + 1]; b++) {
      const row = report.rows.get(site[b]);
      if (row === undefined || report.strings[state[b]] !== "live" || !(born[b] < until)) continue;
      if (report.site("device")[row] !== device) continue;
      known.set(row, (known.get(row) || 0) + (inPool(i) ? report.column("block.requested")[b] : bytes[b]));
    }
  }
  return known;
}
