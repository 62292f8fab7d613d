/* grid.js - a table of any length: the rows that are to be seen are elements, the others are room. */

const ROW_HEIGHT = 24, PRINTED_ROWS = 60;

class Grid {
  /* columns: {title, cell(row) -> text or element, by(row) -> number or text to sort by, kind, width};
   * opened(row) is asked when a row is chosen. */
  constructor(label, columns, opened, attributes) {
    this.columns = columns;
    this.opened = opened;
    this.rows = [];
    this.at = -1;
    this.sorted = { column: -1, down: true };
    const template = columns.map((column) => column.width || "minmax(5rem, 1fr)").join(" ");
    this.head = el("div", { role: "row", class: "row head", "aria-rowindex": "1" }, columns.map((column, i) =>
      el("div", { role: "columnheader", class: column.kind }, column.by
        ? button(column.title, () => this.sort(i, this.sorted.column !== i || !this.sorted.down))
        : column.title)));
    this.head.style.gridTemplateColumns = template;
    this.template = template;
    this.inner = el("div", { role: "rowgroup", class: "inner" });
    this.body = el("div", { class: "scroll", role: "presentation", onscroll: () => this.draw() }, this.inner);
    this.element = el("div", {
      role: "grid", tabindex: "0", "aria-label": label, class: "grid", onkeydown: (event) => this.key(event),
      ...attributes,
    }, el("div", { role: "rowgroup" }, this.head), this.body);
    new ResizeObserver(() => this.draw()).observe(this.body);
    this.pool = [];
  }

  set(rows) {
    this.rows = rows;
    this.at = -1;
    if (this.sorted.column >= 0) this.order();
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this.inner.style.height = `${rows.length * ROW_HEIGHT}px`;
    this.body.scrollTop = 0;
    this.draw();
  }

  order() {
    const { column, down } = this.sorted, by = this.columns[column].by, sign = down ? -1 : 1;
    const keys = new Map(this.rows.map((row) => [row, by(row)]));
    const places = new Map(this.rows.map((row, i) => [row, i]));
    this.rows = [...this.rows].sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      return x === y ? places.get(a) - places.get(b) : (x < y ? -1 : 1) * sign;
    });
  }

  sort(column, down) {
    this.sorted = { column, down };
    [...this.head.children].forEach((cell, i) =>
      i === column ? cell.setAttribute("aria-sort", down ? "descending" : "ascending")
        : cell.removeAttribute("aria-sort"));
    this.order();
    this.at = -1;
    this.draw();
  }

  draw() {
    const high = this.body.clientHeight, print = this.printing;
    const first = print ? 0 : Math.max(0, Math.floor(this.body.scrollTop / ROW_HEIGHT) - 4);
    const last = Math.min(this.rows.length, print ? PRINTED_ROWS : first + Math.ceil(high / ROW_HEIGHT) + 8);
    const shown = [];
    for (let i = first; i < last; i++) shown.push(this.line(i));
    this.inner.replaceChildren(...shown);
  }

  line(i) {
    const row = this.rows[i];
    const line = el("div", {
      role: "row", class: i === this.at ? "row chosen" : "row", "aria-rowindex": String(i + 2),
      "aria-selected": i === this.at ? "true" : "false", onclick: () => this.choose(i),
    }, this.columns.map((column) => el("div", { role: "gridcell", class: column.kind }, column.cell(row))));
    line.style.gridTemplateColumns = this.template;
    line.style.top = `${i * ROW_HEIGHT}px`;
    return line;
  }

  choose(i) {
    if (i < 0 || i >= this.rows.length) return;
    this.at = i;
    const top = i * ROW_HEIGHT, high = this.body.clientHeight;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + ROW_HEIGHT > this.body.scrollTop + high) this.body.scrollTop = top + ROW_HEIGHT - high;
    this.draw();
    if (this.opened) this.opened(this.rows[i]);
  }

  key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW_HEIGHT) - 1);
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page,
      Home: 0, End: this.rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(to, 0), this.rows.length - 1));
  }

  print(on) {
    this.printing = on;
    this.draw();
  }
}
