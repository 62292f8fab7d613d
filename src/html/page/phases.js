/* phases.js - what memory did in each phase that the program named. */

function phaseDevice(page, phase, row) {
  const report = page.report, device = { ...row, api: row.device_api || "cuda", index: row.device };
  return [[short(String(phase.name), 80), phase.domain ? el("small", {}, ` ${short(String(phase.domain), 40)}`) : ""], phase.source, deviceName(device),
    number(row.count), bytes((row.peak_bytes || {}).max || 0), bytes((row.peak_bytes || {}).median || 0), bytes((row.growth_bytes || {}).total || 0),
    bytes(row.trend_bytes || 0), timeText(phase.total_ns),
    (row.sites || []).length ? el("details", {}, el("summary", {}, `${row.sites.length} call site${row.sites.length === 1 ? "" : "s"}`), el("ol", { class: "stack" }, row.sites.map((held) =>
      el("li", {}, bytes(held.bytes), " ", report.rows.has(held.site) ? short(report.siteLine(report.rows.get(held.site)), 160) : `site ${held.site}`)))) : ""];
}

function drawPhases(page, place) {
  const phases = page.report.list("phases");
  if (!phases.length) {
    put(place, el("p", {}, "The program named no phases. With memshim.h, NVTX, ROCTX or MSTX it can: then peaks and growth are told by phase."));
    return {};
  }
  const rows = phases.flatMap((phase) => (phase.devices && phase.devices.length ? phase.devices.map((row) => phaseDevice(page, phase, row))
    : [[short(String(phase.name), 80), phase.source, "", number(phase.count || 0), "", "", "", "", timeText(phase.total_ns), phase.marks ? `${phase.marks} marks` : ""]]));
  put(place, table("By phase and device", [["phase", ""], ["by", ""], ["device", ""], ["times", "right"], ["peak", "right"], ["median peak", "right"], ["growth", "right"],
    ["trend", "right"], ["time", "right"], ["held most at the peak", ""]], rows.slice(0, 1000), { id: "phases" }),
  rows.length > 1000 && el("p", {}, `and ${rows.length - 1000} more`));
  return {};
}
