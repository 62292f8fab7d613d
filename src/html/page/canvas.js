/* canvas.js - a picture that fits its place and the screen's pixels, and is drawn at most once a frame. */

class Picture {
  /* draw(context, width, height) in CSS pixels; height by height(width). */
  constructor(label, height, draw) {
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
    this.place = el("div", { class: "picture" }, this.canvas);
    this.height = height;
    this.draw = draw;
    this.width = 0;
    this.took = 0;
    new ResizeObserver(() => this.again()).observe(this.place);
  }

  again() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.now();
    });
  }

  now() {
    const width = Math.floor(this.place.clientWidth), ratio = window.devicePixelRatio || 1;
    if (width <= 0) return;
    const begun = performance.now(), height = this.height(width);
    const wide = Math.round(width * ratio), high = Math.round(height * ratio);
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.width = width;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.draw(context, width, height);
    this.took = performance.now() - begun;
  }
}

/* An upright line through a chart at a moment, with its name at the foot. `labels` has what was written there: names that
 * would lie on others go a line higher. */
function drawUpright(plot, ns, colour, dash, text, labels) {
  const context = plot.ctx, ratio = window.devicePixelRatio || 1, { left, top, width, height } = plot.bbox;
  const x = plot.valToPos(ns / 1e9, "x", true);
  if (x < left || x > left + width) return;
  context.save();
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = ratio;
  context.font = `${10 * ratio}px system-ui`;
  context.textAlign = "left";
  context.setLineDash(dash.map((length) => length * ratio));
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, top + height);
  context.stroke();
  if (text) {
    const wide = context.measureText(text).width + 6 * ratio, from = x + wide < left + width ? x + 3 * ratio : x - wide + 3 * ratio;
    let row = 0;
    const over = (one) => from < one.to && from + wide > one.from;
    while (labels.some((one) => one.row === row && over(one))) row++;
    if (!labels.some((one) => one.text === text && over(one))) { /* many at one place are told once */
      labels.push({ text, row, from, to: from + wide });
      context.fillText(text, from, top + height - (8 + 12 * row) * ratio);
    }
  }
  context.restore();
}

const widths = new Map();

/* The text cut to a width; a fixed-pitch face makes that a division. */
function fitted(context, text, width) {
  if (!widths.has(context.font)) widths.set(context.font, context.measureText("0").width);
  const most = Math.floor(width / widths.get(context.font));
  return most < 3 ? "" : text.length <= most ? text : text.slice(0, most - 1) + "\u2026";
}
