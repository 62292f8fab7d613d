/* dom.js - elements. Text goes in as text nodes, never as markup. */

const SHOWN_TEXT = 2000; /* characters of any one text; more would only be scrolled past */

/* An element: attributes (on... are listeners, class, aria and the like), then children: elements or text. */
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  put(element, ...children);
  return element;
}

function put(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : short(String(child), SHOWN_TEXT));
  }
  return element;
}

function fill(element, ...children) {
  element.replaceChildren();
  return put(element, ...children);
}

/* A figure: short for people, exact where one points at it. */
function bytes(value, attributes) {
  return el("span", { class: "figure", "data-value": String(value), title: `${exactText(value)} bytes`, ...attributes },
    sizeText(value));
}

function number(value, attributes) {
  return el("span", { class: "figure", "data-value": String(value), ...attributes }, exactText(value));
}

function blockCount(value) {
  return [number(value || 0), Number(value) === 1 ? " block" : " blocks"];
}

function button(text, act, attributes) {
  return el("button", { type: "button", onclick: act, ...attributes }, text);
}

function choice(label, options, chosen, act, attributes) {
  const select = el("select", { onchange: () => act(select.value), ...attributes },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return el("label", {}, `${label} `, select);
}

/* A table of a few rows, all there. Columns: [heading, class]. */
function table(caption, columns, rows, attributes) {
  return el("table", attributes, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map(([heading, kind]) => el("th", { scope: "col", class: kind }, heading)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) => el("td", { class: columns[i][1] }, cell))))));
}

/* What stands behind a picture, for who cannot see it. */
function textTable(summary, make) {
  const place = el("div", {});
  const details = el("details", { class: "behind", ontoggle: () => details.open && fill(place, make()) },
    el("summary", {}, summary), place);
  details.again = () => details.open && fill(place, make());
  return details;
}

/* A stack's text on one line, innermost first; and its first line alone. */
function chainText(text) {
  return String(text || "").split("\n").map((line) => line.trim()).filter((line) => line).join(" <- ");
}

function firstLine(text) {
  const rows = String(text || "").split("\n").map((line) => line.trim()).filter((line) => line);
  return rows.find((line) => !line.startsWith("[")) || rows[0] || "";
}

function lines(text) {
  const rows = String(text || "").split("\n").filter((line) => line.trim());
  return el("ol", { class: "stack" }, rows.map((line) => el("li", {}, short(line, 300))));
}

/* One of the owners' colours, the same all over the page: by place in the list. */
const OWNER_HUES = [212, 28, 145, 275, 350, 180, 48, 310, 95, 240, 12, 165];

class Colours {
  constructor(names) {
    this.hues = new Map(names.map((name, i) => [name, OWNER_HUES[i % OWNER_HUES.length]]));
  }

  of(name, dark) {
    const hue = this.hues.get(name);
    if (hue === undefined) return dark ? "hsl(220 6% 38%)" : "hsl(220 8% 80%)";
    return dark ? `hsl(${hue} 42% 38%)` : `hsl(${hue} 62% 76%)`;
  }
}

function isDark() {
  return getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
}

function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
