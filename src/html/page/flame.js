/* flame.js - the flame graph: stacks by weight, the outermost frame on top. */

const FRAME_HEIGHT = 18, FLAME_DEPTH = 60, LEAST_WIDTH = 0.4;

class Flame {
  constructor(page, place) {
    this.page = page;
    this.report = page.report;
    this.value = VALUES.find((value) => sumOf(this.report.site(value.key)) > 0) || VALUES[0];
    this.inverted = false;
    this.colour = "owner";
    this.zoom = 0;
    this.at = 0;
    this.wanted = "";
    this.found = null;
    this.picture = new Picture("flame graph; arrow keys move, Enter zooms, Escape zooms out",
      () => Math.min(Math.max(this.depth + 1, 4), FLAME_DEPTH) * FRAME_HEIGHT, (...how) => this.draw(...how));
    this.says = el("p", { class: "says", "aria-live": "polite", id: "flame-says" });
    this.matches = el("output", { id: "flame-matched" });
    this.search = el("input", { type: "search", id: "flame-search", placeholder: "function or file",
      "aria-label": "search in the flame graph", oninput: () => this.look(this.search.value) });
    this.behind = textTable("as a table", () => this.rows());
    const canvas = this.picture.canvas;
    canvas.addEventListener("mousemove", (event) => this.point(this.under(event)));
    canvas.addEventListener("click", (event) => this.zoomTo(this.under(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    put(place, el("div", { class: "tools" },
      choice("Weight", VALUES.map((value) => [value.key, value.title]), this.value.key, (key) => this.weighBy(key), { id: "flame-value" }),
      choice("From", [["out", "the outermost function"], ["in", "the allocating call"]], "out", (way) => this.turn(way === "in"), { id: "flame-way" }),
      choice("Colour", [["owner", "owner"], ["name", "function"]], "owner", (way) => {
        this.colour = way;
        this.picture.again();
      }, { id: "flame-colour" }),
      el("label", {}, "Search ", this.search), this.matches,
      button("Zoom out", () => this.zoomTo(0), { id: "flame-out" })),
    el("div", { class: "legend", id: "flame-legend" }), this.says, this.picture.place, this.behind);
    this.legend = place.querySelector(".legend");
    this.prepare();
  }

  prepare() {
    const values = this.report.site(this.value.key);
    this.tree = this.inverted ? innerTree(this.report, values) : outerTree(this.report);
    const weighed = weigh(this.tree, values, this.report.column("site.owner"));
    this.weight = weighed.weight;
    this.owner = weighed.owner;
    this.children = childrenOf(this.tree, this.weight);
    this.whole = this.weight[0];
    this.zoom = this.at = 0;
    this.depth = 0;
    this.look(this.wanted);
    this.measure();
    this.say();
    const owners = new Set();
    this.report.sites.forEach((_, row) => values[row] > 0 && owners.add(this.report.text("site.owner", row)));
    this.owners = [...owners].slice(0, 16);
    this.recolour();
    this.behind.again();
  }

  recolour() {
    fill(this.legend, this.owners.map((owner) => el("span", {}, swatch(this.page, owner), short(owner, 40))),
      el("span", {}, swatch(this.page, ""), "several owners"));
    this.picture.again();
  }

  weighBy(key) {
    this.value = VALUES.find((value) => value.key === key);
    this.prepare();
  }

  turn(inverted) {
    this.inverted = inverted;
    this.prepare();
  }

  look(text) {
    this.wanted = text;
    this.found = text ? matchFrames(this.report, text) : null;
    const sum = this.found ? matchedWeight(this.tree, this.weight, this.found) : 0;
    fill(this.matches, this.found ? `${valueText(sum, this.value.unit)}, ${shareText(sum, this.whole)}` : "");
    this.matches.setAttribute("data-value", String(sum));
    this.picture.again();
  }

  /* How deep what is to be seen is. */
  measure() {
    const width = this.picture.width || 1000;
    this.rects = layOut(this.tree, this.weight, this.children, this.zoom, width, LEAST_WIDTH);
    let depth = 0;
    for (let i = 1; i < this.rects.length; i += 4) if (this.rects[i] > depth) depth = this.rects[i];
    this.depth = depth;
    this.picture.again();
  }

  zoomTo(node) {
    if (node < 0) return;
    this.zoom = this.at = node;
    this.measure();
    this.say();
    this.behind.again();
  }

  point(node) {
    if (node < 0 || node === this.at) return;
    this.at = node;
    this.say();
    this.picture.again();
  }

  name(node) {
    return node === 0 ? "all" : clean(this.report.text("frame.name", this.tree.frame[node]));
  }

  /* A node stands for all lines of its function. */
  text(node) {
    const frame = this.tree.frame[node], file = this.report.text("frame.file", frame);
    return this.report.text("frame.name", frame) + (file ? ` in ${file}` : "");
  }

  say() {
    const weight = this.weight[this.at];
    const what = this.at === 0 ? "all" : short(this.text(this.at), 300);
    const owner = this.owner[this.at] >= 0 ? `, ${short(this.report.strings[this.owner[this.at]], 40)}` : "";
    fill(this.says, `${what}: ${valueText(weight, this.value.unit)}, ${shareText(weight, this.whole)}${owner}`);
    this.says.setAttribute("data-value", String(weight));
  }

  under(event) {
    const depth = Math.floor(event.offsetY / FRAME_HEIGHT), x = event.offsetX;
    for (let i = 0; i < this.rects.length; i += 4)
      if (this.rects[i + 1] === depth && x >= this.rects[i + 2] && x < this.rects[i + 2] + this.rects[i + 3]) return this.rects[i];
    return -1;
  }

  fillOf(node, dark) {
    if (this.colour === "owner") return this.page.colours.of(this.owner[node] >= 0 ? this.report.strings[this.owner[node]] : "", dark);
    if (node === 0) return this.page.colours.of("", dark);
    const hue = Math.imul(this.report.column("frame.name")[this.tree.frame[node]] + 7, 0x9e3779b1) >>> 0;
    return dark ? `hsl(${hue % 60} 45% 34%)` : `hsl(${hue % 60} 75% 72%)`;
  }

  draw(context, width) {
    if (width !== this.laidFor || this.laidZoom !== this.zoom || this.laidTree !== this.tree) {
      this.rects = layOut(this.tree, this.weight, this.children, this.zoom, width, LEAST_WIDTH);
      [this.laidFor, this.laidZoom, this.laidTree] = [width, this.zoom, this.tree];
    }
    const dark = isDark(), ink = themeColour("ink"), mark = themeColour("mark"), fills = new Map();
    context.font = "11px ui-monospace, monospace";
    context.textBaseline = "middle";
    for (let i = 0; i < this.rects.length; i += 4) {
      const node = this.rects[i], y = this.rects[i + 1] * FRAME_HEIGHT, x = this.rects[i + 2], wide = this.rects[i + 3];
      const found = this.found && node > 0 && this.found[this.tree.frame[node]];
      const key = this.colour === "owner" ? this.owner[node] : -3 - node;
      if (!fills.has(key)) fills.set(key, this.fillOf(node, dark));
      context.globalAlpha = this.found && !found ? 0.35 : 1;
      context.fillStyle = found ? mark : fills.get(key);
      context.fillRect(x, y, Math.max(wide - (wide > 2 ? 0.6 : 0), 0.3), FRAME_HEIGHT - 1);
      if (node === this.at) {
        context.globalAlpha = 1;
        context.strokeStyle = ink;
        context.strokeRect(x + 0.5, y + 0.5, Math.max(wide - 1.5, 0.5), FRAME_HEIGHT - 2);
      }
      if (wide < 30) continue;
      context.globalAlpha = 1;
      context.fillStyle = ink;
      context.fillText(fitted(context, this.name(node), wide - 6), x + 3, y + FRAME_HEIGHT / 2);
    }
    context.globalAlpha = 1;
  }

  key(event) {
    const parent = this.tree.parent[this.at], from = this.children.first, list = this.children.list;
    const beside = (step) => {
      for (let i = from[parent]; this.at && i < from[parent + 1]; i++)
        if (list[i] === this.at) return i + step >= from[parent] && i + step < from[parent + 1] ? list[i + step] : -1;
      return -1;
    };
    const to = { ArrowUp: () => (this.at ? parent : -1), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
      ArrowDown: () => (from[this.at] < from[this.at + 1] ? list[from[this.at]] : -1) }[event.key];
    if (to) this.point(to());
    else if (event.key === "Enter" || event.key === " ") this.zoomTo(this.at);
    else if (event.key === "Escape" || event.key === "Backspace") this.zoomTo(this.zoom ? this.tree.parent[this.zoom] : 0);
    else return;
    event.preventDefault();
  }

  /* The heaviest nodes below the zoomed one. */
  rows() {
    const rows = [];
    for (let i = 0; i < this.rects.length; i += 4) rows.push([this.rects[i], this.rects[i + 1]]);
    rows.sort((a, b) => this.weight[b[0]] - this.weight[a[0]] || a[1] - b[1]);
    return table(`${this.value.title}: the heaviest frames of what is shown`, [["weight", "right"], ["share", "right"], ["depth", "right"], ["frame", "code"]],
      rows.slice(0, 100).map(([node, depth]) => [this.value.unit === "bytes" ? bytes(this.weight[node]) : number(this.weight[node]),
        shareText(this.weight[node], this.whole), String(depth), node ? short(this.text(node), 200) : "all"]));
  }
}
