/* numbers.js - figures and texts for people, as the command writes them. Pure. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/* What JSON holds as a string because no double does. */
function asNumber(value) {
  return typeof value === "number" ? value : value === undefined || value === null ? 0 : Number(value);
}

/* The most that the program had of a device: the pool's, and what the driver made. Reports of before have no figure for it. */
function reservedMost(device) {
  return [device.peak_held_bytes, device.peak_live_bytes, device.peak_reserved_bytes].reduce((most, value) => (asNumber(value) > asNumber(most) ? value : most), 0);
}

function sizeText(value) {
  let size = asNumber(value), unit = 0;
  const sign = size < 0 ? "-" : "";
  size = Math.abs(size);
  if (size < 1024) return `${sign}${size} B`;
  while (unit < UNITS.length - 1 && size >= 1023.95) {
    size /= 1024;
    unit++;
  }
  return `${sign}${size.toFixed(unit >= 3 && size < 999.995 ? 2 : 1)} ${UNITS[unit]}`;
}

function exactText(value) {
  return String(typeof value === "bigint" ? value : value === undefined || value === null ? 0 : value)
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function timeText(value) {
  const ns = asNumber(value);
  if (ns < 1000) return `${ns} ns`;
  if (ns < 999950) return `${(ns / 1e3).toFixed(1)} us`;
  if (ns < 999.95e6) return `${(ns / 1e6).toFixed(1)} ms`;
  if (ns < 599.95e9) return `${(ns / 1e9).toFixed(1)} s`;
  return `${Math.floor(ns / 3600e9)} h ${String(Math.floor(ns / 60e9) % 60).padStart(2, "0")} min`;
}

function shareText(part, whole) {
  return whole > 0 ? `${(100 * part / whole).toFixed(1)}%` : "-";
}

/* Characters that draw nothing, or change how others are drawn: controls, and those that turn the direction. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function clean(text) {
  return String(text === undefined || text === null ? "" : text).replace(UNSEEN, "\ufffd");
}

/* As one line of at most so many characters; the middle goes. */
function short(text, most) {
  if (text.length > 2 * most + 64) text = text.slice(0, most) + text.slice(-most);
  const whole = clean(text);
  if (whole.length <= most) return whole;
  const head = Math.ceil((most - 1) / 2);
  return whole.slice(0, head) + "\u2026" + whole.slice(whole.length - (most - 1 - head));
}

/* MEMSHIM_LIMIT as bytes; NaN for what is none. */
function sizeOf(text, whole) {
  const match = /^\s*([0-9.]+)\s*(?:([KMGT])i?B?|(%)|B)?\s*$/i.exec(text || "");
  if (!match) return NaN;
  if (match[3]) return Math.floor(whole * Number(match[1]) / 100);
  return Number(match[1]) * 1024 ** (match[2] ? "KMGT".indexOf(match[2].toUpperCase()) + 1 : 0);
}
