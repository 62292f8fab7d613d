/* inflate.js - RFC 1950 and 1951, at once: what the browser has for it answers later, and a picture of the page that is taken
 * as soon as it is loaded would show none of it. Pure. */

const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/* How many codes there are of each length, and the symbols in the order of their codes. */
function codesOf(lengths) {
  const counts = new Uint16Array(16), next = new Uint16Array(16), symbols = new Uint16Array(lengths.length);
  for (const length of lengths) counts[length]++;
  counts[0] = 0;
  for (let i = 1; i < 16; i++) next[i] = next[i - 1] + counts[i - 1];
  lengths.forEach((length, symbol) => { if (length) symbols[next[length]++] = symbol; });
  return { counts, symbols };
}

class Inflating {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 2; /* behind the header of two bytes */
    this.held = this.bits = this.used = 0;
    this.out = new Uint8Array(Math.max(bytes.length * 4, 1024));
  }

  take(count) {
    while (this.bits < count) {
      if (this.at >= this.bytes.length) throw new Error("the block ends early");
      this.held |= this.bytes[this.at++] << this.bits;
      this.bits += 8;
    }
    const value = this.held & ((1 << count) - 1);
    this.held >>>= count;
    this.bits -= count;
    return value;
  }

  symbol({ counts, symbols }) {
    let code = 0, first = 0, index = 0;
    for (let length = 1; length < 16; length++) {
      code |= this.take(1);
      if (code - first < counts[length]) return symbols[index + code - first];
      index += counts[length];
      first = (first + counts[length]) << 1;
      code <<= 1;
    }
    throw new Error("no such code");
  }

  room(count) {
    if (this.used + count <= this.out.length) return;
    const larger = new Uint8Array(Math.max(this.out.length * 2, this.used + count));
    larger.set(this.out.subarray(0, this.used));
    this.out = larger;
  }

  stored() {
    this.held = this.bits = 0;
    const count = this.bytes[this.at] | this.bytes[this.at + 1] << 8;
    this.at += 4;
    this.room(count);
    this.out.set(this.bytes.subarray(this.at, this.at + count), this.used);
    this.used += count;
    this.at += count;
  }

  tables() {
    const lengths = new Uint8Array(this.take(5) + 257), far = new Uint8Array(this.take(5) + 1), count = this.take(4) + 4;
    const of = new Uint8Array(19), all = new Uint8Array(lengths.length + far.length);
    for (let i = 0; i < count; i++) of[LENGTH_ORDER[i]] = this.take(3);
    const codes = codesOf(of);
    for (let i = 0; i < all.length;) {
      const symbol = this.symbol(codes);
      if (symbol < 16) all[i++] = symbol;
      else {
        const value = symbol === 16 ? all[i - 1] : 0, times = symbol === 16 ? 3 + this.take(2) : symbol === 17 ? 3 + this.take(3) : 11 + this.take(7);
        all.fill(value, i, i + times);
        i += times;
      }
    }
    return [codesOf(all.subarray(0, lengths.length)), codesOf(all.subarray(lengths.length))];
  }

  compressed([near, far]) {
    for (;;) {
      const symbol = this.symbol(near);
      if (symbol === 256) return;
      this.room(258);
      if (symbol < 256) {
        this.out[this.used++] = symbol;
        continue;
      }
      const count = LENGTH_BASE[symbol - 257] + this.take(LENGTH_BITS[symbol - 257]), step = this.symbol(far);
      const bits = step < 4 ? 0 : (step >> 1) - 1, back = (step < 4 ? step : (2 + (step & 1)) << bits) + 1 + this.take(bits);
      if (back > this.used) throw new Error("a copy from before the beginning");
      for (let i = 0; i < count; i++, this.used++) this.out[this.used] = this.out[this.used - back];
    }
  }

  run() {
    const fixed = () => [codesOf(Uint8Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))), codesOf(new Uint8Array(30).fill(5))];
    for (let last = 0; !last;) {
      last = this.take(1);
      const kind = this.take(2);
      if (kind === 3) throw new Error("no such block");
      if (kind === 0) this.stored();
      else this.compressed(kind === 1 ? fixed() : this.tables());
    }
    return this.out.subarray(0, this.used);
  }
}
