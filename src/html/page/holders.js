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

/* The moments of which the report knows who held a device's memory, each {ns, kind, of}: of most of them all
 * sites, of a phase's largest peak those that held most. */
function knownMoments(report, device) {
  const row = report.list("devices")[device], known = [];
  report.column("time.moment").forEach((ns, i) => known.push({ ns, kind: "moment", of: i }));
  known.push({ ns: asNumber(row.peak_ns), kind: "peak" }, { ns: asNumber(report.head.run.end_unix_ns) - asNumber(report.head.run.start_unix_ns), kind: "end" });
  for (const oom of report.list("oom"))
    if (report.deviceOf(oom) === device && Array.isArray(oom.sites) && oom.sites.length)
      known.push({ ns: asNumber(oom.t_ns), kind: "oom", of: oom });
  for (const phase of report.list("phases"))
    for (const part of phase.devices || [])
      if (report.deviceOf(part) === device && Array.isArray(part.sites) && part.sites.length)
        known.push({ ns: asNumber(part.peak_ns), kind: "phase", of: part, name: String(phase.name) });
  return known;
}

/* What the sites held at a known moment, [{site, bytes}] by rows of sites[], the most first. */
function heldThen(report, device, known) {
  const of = report.site("device"), held = new Map();
  if (known.kind === "peak" || known.kind === "end") {
    report.site(known.kind === "peak" ? "peak" : "live").forEach((value, site) => held.set(site, value));
  } else if (known.kind === "moment") {
    const site = report.column("held.site"), moment = report.column("held.moment"), bytes = report.column("held.bytes");
    for (let i = 0; i < site.length; i++) if (moment[i] <= known.of) held.set(site[i], bytes[i]);
  } else {
    for (const row of known.of.sites) if (report.rows.has(row.site)) held.set(report.rows.get(row.site), asNumber(row.bytes));
  }
  return [...held].filter(([site, value]) => value > 0 && of[site] === device).map(([site, value]) => ({ site, bytes: value }))
    .sort((a, b) => b.bytes - a.bytes || a.site - b.site);
}

/* Who held a device's memory in a stretch of time: of the known moment in it, or of the nearest one. A moment
 * that is known of all sites goes before one that is not; the peak before all.
 * {kind, ns, inside, name, rows: [{site, bytes}]} */
function heldAt(report, device, from, until, isLast) {
  const middle = (from + until) / 2, order = ["peak", "oom", "end", "moment", "phase"];
  const inside = (one) => (one.ns >= from && one.ns < until) || (isLast && one.kind === "end");
  const away = (one) => (inside(one) ? -1 : Math.abs(one.ns - middle));
  const best = knownMoments(report, device).sort((a, b) => away(a) - away(b) || order.indexOf(a.kind) - order.indexOf(b.kind))[0];
  return { kind: best.kind, ns: best.ns, inside: inside(best), name: best.name, rows: heldThen(report, device, best) };
}
