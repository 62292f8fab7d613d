/* segments.js - what the vendor gave, piece by piece, by what it is used for; and whose blocks strand the rest. */

const LINE_HEIGHT = 16, LINES_SHOWN = 30, LINES_MOST = 4000;

/* The pieces of some segments one behind the other: where each begins, and its use. */
function piecesOf(report, segments, uses) {
  const first = report.column("segment.first"), size = report.column("segment.bytes");
  const bytes_ = report.column("block.bytes"), state = report.column("block.state"), requested = report.column("block.requested");
  const at = [], use = [], block = [], of = [], begins = [];
  let where = 0;
  const add = (length, what, b, i) => {
    if (!(length > 0)) return;
    at.push(where);
    use.push(USES.indexOf(what));
    block.push(b);
    of.push(i);
    where += length;
  };
  for (const i of segments) {
    const end = where + size[i];
    begins.push(where);
    for (let b = first[i]; b < first[i + 1]; b++) {
      const told = report.strings[state[b]], free = uses[i].blocks ? "stranded" : "cached";
      if (told === "live") {
        const asked = Math.min(Math.max(requested[b], 0), bytes_[b]);
        add(asked, "live", b, i);
        add(bytes_[b] - asked, "rounding", b, i);
      } else add(bytes_[b], told === "free" || !USES.includes(told) ? free : told, b, i);
    }
    add(end - where, "unknown", -1, i);
    where = Math.max(end, where);
  }
  at.push(where);
  return { at: Float64Array.from(at), use: Uint8Array.from(use), block, of, begins, whole: where };
}

class Segments {
  constructor(page, place) {
    this.page = page;
    this.report = page.report;
    this.uses = segmentUses(this.report);
    this.place = place;
    const devices = [...new Set(this.report.column("segment.device"))].filter((row) => row !== NONE);
    if (!devices.length) {
      put(place, el("p", {}, "The report has no segments: nothing was allocated or held when it was written."));
      return;
    }
    this.device = devices[0];
    this.kind = "pool";
    this.scroll = 0;
    this.at = -1;
    this.lines = LINES_SHOWN;
    this.picture = new Picture("map of segments; arrow keys move from piece to piece, plus and minus zoom", () => LINES_SHOWN * LINE_HEIGHT,
      (...how) => this.draw(...how));
    this.says = el("p", { class: "says", "aria-live": "polite", id: "segment-says" });
    this.sums = el("div", { id: "segment-sums" });
    const canvas = this.picture.canvas;
    canvas.addEventListener("mousemove", (event) => this.point(this.under(event)));
    canvas.addEventListener("click", (event) => this.open(this.under(event)));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.detail = el("section", { class: "detail", "aria-live": "polite", id: "segment-detail" }, "Choose a piece to see whose it is.");
    put(place, el("div", { class: "tools" },
      choice("Device", devices.map((row) => [String(row), deviceName(this.report.list("devices")[row])]), String(this.device),
        (row) => this.choose(Number(row), this.kind), { id: "segment-device" }),
      choice("Memory", [["pool", this.report.head.layer === "tensors" ? "segments with tensors" : "the pool's segments"], ["followed", "blocks of the vendor's"]], "pool",
        (kind) => this.choose(this.device, kind), { id: "segment-kind" }),
      button("Zoom in", () => this.zoom(2)), button("Zoom out", () => this.zoom(0.5))),
    this.sums, this.says, this.picture.place, this.detail, this.holders = el("div", {}),
    this.behind = textTable("the segments as a table", () => this.table()));
    const has = (kind) => this.chosen(this.device, kind).length > 0;
    this.choose(this.device, has("pool") ? "pool" : "followed");
    place.querySelector("#segment-kind").value = this.kind;
  }

  chosen(device, kind) {
    const rows = [], of = this.report.column("segment.device");
    for (let i = 0; i < of.length; i++)
      if (of[i] === device && (this.report.text("segment.tier", i) === "followed") === (kind === "followed")) rows.push(i);
    const address = this.report.column("segment.address");
    return rows.sort((a, b) => address[a] - address[b] || a - b);
  }

  choose(device, kind) {
    this.device = device;
    this.kind = kind;
    this.rows = this.chosen(device, kind);
    this.pieces = piecesOf(this.report, this.rows, this.uses);
    this.lines = LINES_SHOWN;
    this.scroll = 0;
    this.at = -1;
    this.sum();
    this.tellHolders();
    this.picture.again();
    this.behind.again();
  }

  sum() {
    const sums = new Float64Array(USES.length), { at, use, whole } = this.pieces;
    for (let i = 0; i < use.length; i++) sums[use[i]] += at[i + 1] - at[i];
    fill(this.sums, el("p", {}, number(this.rows.length), " segments, ", bytes(whole, { id: "segment-whole" })),
      bar(USES.map((name, i) => ({ name, value: sums[i], colour: themeColour(name) })), whole, "bytes by use"),
      el("div", { class: "legend" }, USES.map((name, i) => {
        const piece = el("i", { class: "swatch", "aria-hidden": "true" });
        piece.style.background = themeColour(name);
        return sums[i] > 0 && el("span", {}, piece, `${name} `, bytes(sums[i], { "data-use": name }));
      })));
  }

  tellHolders() {
    const report = this.report, rows = this.kind === "pool" ? holdersOf(report, this.device, this.uses) : [];
    fill(this.holders, rows.length > 0 && table("Whose blocks strand free memory: freed, their segments could be given back",
      [["fragments", "right"], ["holds there", "right"], ["segments", "right"], ["where", "code"]],
      rows.slice(0, 50).map((row) => [bytes(row.stranded), bytes(row.live), number(row.segments),
        report.rows.has(row.site) ? short(report.siteLine(report.rows.get(row.site)), 200) : `site ${row.site}`]), { id: "holders" }),
    rows.length > 50 && el("p", {}, `and ${rows.length - 50} more call sites`));
  }

  /* Bytes that a line shows. */
  perLine() {
    return Math.max(this.pieces.whole / this.lines, 1);
  }

  pieceAt(byte) {
    const { at, use } = this.pieces;
    let low = 0, high = use.length - 1;
    if (byte < 0 || byte >= this.pieces.whole) return -1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (at[middle] <= byte) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  under(event) {
    const line = Math.floor(event.offsetY / LINE_HEIGHT) + this.scroll;
    return this.pieceAt((line + event.offsetX / this.picture.width) * this.perLine());
  }

  draw(context, width) {
    const { at, use, begins } = this.pieces, per = this.perLine(), colours = USES.map(themeColour);
    const paper = themeColour("paper"), ink = themeColour("ink");
    for (let row = 0; row < LINES_SHOWN; row++) {
      const from = (row + this.scroll) * per, to = Math.min(from + per, this.pieces.whole), y = row * LINE_HEIGHT;
      if (from >= this.pieces.whole) break;
      /* What is narrower than a pixel shares it: the one that has most of it is drawn. */
      for (let i = this.pieceAt(from), x = 0; i < use.length && at[i] < to;) {
        const right = Math.min((at[i + 1] - from) / per * width, width);
        if (right - x >= 1) {
          this.piece(context, i, x, y, right - x, colours, ink);
          x = right;
          i++;
          continue;
        }
        const share = new Float64Array(USES.length), edge = x + 1;
        let most = i;
        for (; i < use.length && at[i] < to && (at[i + 1] - from) / per * width < edge; i++) {
          share[use[i]] += at[i + 1] - at[i];
          if (share[use[i]] > share[use[most]]) most = i;
        }
        this.piece(context, most, x, y, edge - x, colours, ink);
        x = edge;
      }
    }
    context.fillStyle = paper;
    const shown = (this.scroll + LINES_SHOWN) * per;
    if (begins.length / this.lines < width / 4)
      for (const begin of begins) {
        if (begin < this.scroll * per || begin >= shown) continue;
        const line = Math.floor(begin / per);
        context.fillRect((begin / per - line) * width - 0.5, (line - this.scroll) * LINE_HEIGHT, 1, LINE_HEIGHT);
      }
    for (let row = 1; row < LINES_SHOWN; row++) context.fillRect(0, row * LINE_HEIGHT - 1, width, 1);
  }

  piece(context, i, x, y, wide, colours, ink) {
    context.fillStyle = i === this.at ? ink : colours[this.pieces.use[i]];
    context.fillRect(x, y, wide, LINE_HEIGHT);
  }

  tell(i) {
    const { at, use, block, of } = this.pieces, report = this.report, b = block[i], segment = of[i];
    const site = b >= 0 ? report.rows.get(report.column("block.site")[b]) : undefined;
    const whose = site === undefined ? "" : `, ${short(report.siteLine(site), 160)}`;
    const address = exactAt(report.column("segment.address"), segment);
    return `${USES[use[i]]}: ${sizeText(at[i + 1] - at[i])} in segment 0x${address.toString(16)} of ${sizeText(report.column("segment.bytes")[segment])}${whose}`;
  }

  point(i) {
    if (i < 0 || i === this.at) return;
    this.at = i;
    fill(this.says, this.tell(i));
    this.picture.again();
  }

  open(i) {
    if (i < 0) return;
    this.point(i);
    const b = this.pieces.block[i], report = this.report;
    const site = b >= 0 ? report.rows.get(report.column("block.site")[b]) : undefined;
    fill(this.detail, el("p", {}, this.tell(i)),
      b >= 0 && report.column("block.born_ns")[b] >= 0 && this.pieces.use[i] < 2 && el("p", {}, `allocated after ${timeText(report.column("block.born_ns")[b])}`),
      site !== undefined && siteDetail(report, site));
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 50, PageUp: -50 }[event.key], last = this.pieces.use.length - 1;
    if (step) {
      this.point(Math.min(Math.max(this.at + step, 0), last));
      this.into();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.pan(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" || event.key === " ") this.open(this.at);
    else if (event.key === "+" || event.key === "=") this.zoom(2);
    else if (event.key === "-") this.zoom(0.5);
    else return;
    event.preventDefault();
  }

  /* The chosen piece comes into sight. */
  into() {
    const line = Math.floor(this.pieces.at[this.at] / this.perLine());
    if (line < this.scroll || line >= this.scroll + LINES_SHOWN) this.pan(line - this.scroll - LINES_SHOWN / 2);
  }

  pan(lines) {
    this.scroll = Math.max(0, Math.min(Math.round(this.scroll + lines), Math.ceil(this.lines - LINES_SHOWN)));
    this.picture.again();
  }

  zoom(by) {
    const middle = (this.scroll + LINES_SHOWN / 2) * this.perLine();
    this.lines = Math.max(LINES_SHOWN, Math.min(this.lines * by, LINES_MOST));
    this.scroll = 0;
    this.pan(middle / this.perLine() - LINES_SHOWN / 2);
  }

  wheel(event) {
    if (!event.ctrlKey && this.lines <= LINES_SHOWN) return;
    event.preventDefault();
    if (event.ctrlKey) this.zoom(event.deltaY < 0 ? 1.5 : 1 / 1.5);
    else this.pan(Math.sign(event.deltaY) * 3);
  }

  recolour() {
    if (!this.picture) return;
    this.sum();
    this.picture.again();
  }

  table() {
    const report = this.report, rows = [...this.rows].sort((a, b) => this.uses[b].stranded - this.uses[a].stranded || a - b);
    return [table("Most fragmented first", [["address", "code"], ["bytes", "right"], ["tier", ""], ["allocated", "right"], ["fragmented", "right"], ["pending", "right"], ["blocks", "right"]],
      rows.slice(0, 200).map((i) => [`0x${exactAt(report.column("segment.address"), i).toString(16)}`, bytes(report.column("segment.bytes")[i]),
        report.text("segment.tier", i), bytes(this.uses[i].live), bytes(this.uses[i].stranded), bytes(this.uses[i].limbo), number(this.uses[i].blocks)])),
    rows.length > 200 && el("p", {}, `and ${rows.length - 200} more segments`)];
  }
}
