/* decode.js - a report's block of the page, unpacked: docs/user/html.md describes the bytes. Pure. */

const NONE = 0xffffffff;

function bytesOfBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/* What is larger than this is left to the browser, which is quicker and answers later. */
const AT_ONCE = 1 << 20;

async function inflate(text) {
  if (text.length <= AT_ONCE) return new Inflating(bytesOfBase64(text)).run();
  const stream = new Blob([bytesOfBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function word(bytes, at, count, i, plane) {
  const from = at + plane * count + i;
  return bytes[from] | bytes[from + count] << 8 | bytes[from + 2 * count] << 16 | bytes[from + 3 * count] << 24;
}

/* Numbers of 8 bytes as doubles, and those that no double holds in `exact` as well. */
function longColumn(bytes, at, count) {
  const column = new Float64Array(count);
  let large = false;
  for (let i = 0; i < count; i++) {
    column[i] = word(bytes, at, count, i, 4) * 4294967296 + (word(bytes, at, count, i, 0) >>> 0);
    large = large || !Number.isSafeInteger(column[i]);
  }
  if (large) {
    column.exact = new BigInt64Array(count);
    for (let i = 0; i < count; i++)
      column.exact[i] = BigInt(word(bytes, at, count, i, 4)) << 32n | BigInt(word(bytes, at, count, i, 0) >>> 0);
  }
  return column;
}

function intColumn(bytes, at, count) {
  const column = new Uint32Array(count);
  for (let i = 0; i < count; i++) column[i] = word(bytes, at, count, i, 0);
  return column;
}

/* {head, columns}: the head is the report's JSON without what is in columns. */
function unpack(bytes) {
  if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(0, 4)) !== "MSH1")
    throw new Error("this page's data is damaged");
  let at = 8 + (word(bytes, 4, 1, 0, 0) >>> 0);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, at)));
  const columns = {};
  for (const [name, size, count] of head.columns) {
    if (at + size * count > bytes.length) throw new Error("this page's data is cut off");
    columns[name] = size === 8 ? longColumn(bytes, at, count)
      : size === 4 ? intColumn(bytes, at, count) : bytes.slice(at, at + count);
    at += size * count;
  }
  return { head, columns };
}

/* The number at a place as it was written: a number, or a BigInt beyond 2^53. */
function exactAt(column, i) {
  return column.exact && !Number.isSafeInteger(column[i]) ? column.exact[i] : column[i];
}
