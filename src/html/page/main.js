/* main.js - the page: which report and which view is shown, the theme, printing. */

const VIEWS = [
  ["overview", "Overview", (page, place) => drawOverview(page, place)],
  ["time", "Memory over time", (page, place) => new Time(page, place)],
  ["flame", "Flame graph", (page, place) => new Flame(page, place)],
  ["segments", "Segments", (page, place) => new Segments(page, place)],
  ["sites", "Call sites", (page, place) => new Sites(page, place)],
  ["phases", "Phases", (page, place) => drawPhases(page, place)],
  ["findings", "Findings and leaks", (page, place) => drawFindings(page, place)],
  ["about", "Environment", (page, place) => drawAbout(page, place)],
];
const THEMES = ["auto", "light", "dark"];

class Page {
  constructor() {
    this.blocks = document.querySelectorAll("div.report");
    this.index = [];
    this.views = {};
    this.tabs = document.getElementById("tabs");
    this.main = document.getElementById("main");
    this.view = "overview";
    this.tabs.addEventListener("keydown", (event) => this.key(event));
    this.theme = el("button", { type: "button", id: "theme", onclick: () => this.nextTheme() }, "Theme: auto");
    this.theme.setting = "auto";
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    window.addEventListener("hashchange", () => this.show(this.address()));
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  /* The view that the page's address names: #time, #flame, ... */
  address() {
    const name = window.location.hash.slice(1);
    return VIEWS.some(([one]) => one === name) ? name : "overview";
  }

  async start() {
    this.view = this.address();
    const index = document.querySelector("div.index");
    if (index) this.index = JSON.parse(new TextDecoder().decode(await inflate(index.textContent)));
    for (const [name, title] of VIEWS)
      put(this.tabs, button(title, () => this.show(name), { role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}` }));
    await this.open(0);
  }

  /* [row, what the list says of it] of each report; of one with tensors, that of the layer which is shown. */
  reports() {
    const rows = new Map();
    this.index.forEach((one, i) => {
      const of = one.of === undefined ? `row ${i}` : one.of;
      if (!rows.has(of) || (this.layer && one.layer === this.layer)) rows.set(of, i);
    });
    return [...rows.values()].map((i) => [i, this.index[i]]);
  }

  /* Which report, which layer of it, and the theme. */
  tools() {
    const tools = document.getElementById("reports"), focus = document.activeElement && document.activeElement.id, reports = this.reports();
    const layers = this.index.map((one, i) => [String(i), one.layer, one.of]).filter(([, layer, of]) => layer && of === this.index[this.at].of);
    const act = (i) => this.open(Number(i));
    fill(tools, reports.length > 1 && choice("Report", reports.map(([i, one]) => [String(i), short(one.path, 80)]), String(this.at), act, { id: "report" }),
      layers.length > 1 && choice("Shown", layers.map(([i, layer]) => [i, layer]), String(this.at), act, { id: "layer" }), this.theme);
    if (["report", "layer"].includes(focus) && document.getElementById(focus)) document.getElementById(focus).focus();
  }

  async read(i) {
    return new Report(unpack(await inflate(this.blocks[i].textContent)));
  }

  async open(i) {
    this.report = await this.read(i);
    this.at = i;
    this.layer = (this.index[i] || {}).layer || this.layer;
    const owners = [...new Set(this.report.list("owners").map((row) => String(row.owner)))];
    this.colours = new Colours(owners.filter((owner) => owner !== "unknown"));
    document.title = `memshim: ${short(this.report.head.path, 80)}`;
    fill(document.getElementById("what"), short(this.report.head.path, 120));
    this.tools();
    this.views = {};
    fill(this.main, VIEWS.map(([name, title]) =>
      el("section", { class: "view", id: `view-${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}`, hidden: true },
        el("h2", {}, title))));
    this.show(this.view);
    this.readyAfter = performance.now();
    document.documentElement.setAttribute("data-ready", "yes");
  }

  draw(name) {
    if (!this.views[name]) {
      const place = document.getElementById(`view-${name}`), make = VIEWS.find((view) => view[0] === name)[2];
      this.views[name] = make(this, place) || {};
    }
  }

  show(name) {
    this.view = name;
    if (this.address() !== name) window.history.replaceState(null, "", `#${name}`);
    for (const [other] of VIEWS) {
      const tab = document.getElementById(`tab-${other}`);
      tab.setAttribute("aria-selected", other === name ? "true" : "false");
      tab.tabIndex = other === name ? 0 : -1;
      document.getElementById(`view-${other}`).hidden = other !== name;
    }
    this.draw(name);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = VIEWS.findIndex(([name]) => name === this.view), next = VIEWS[(at + step + VIEWS.length) % VIEWS.length][0];
    event.preventDefault();
    this.show(next);
    document.getElementById(`tab-${next}`).focus();
  }

  nextTheme() {
    this.theme.setting = THEMES[(THEMES.indexOf(this.theme.setting) + 1) % THEMES.length];
    if (this.theme.setting === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", this.theme.setting);
    fill(this.theme, `Theme: ${this.theme.setting}`);
    this.redraw();
  }

  /* Colours changed: pictures are drawn again, swatches and strips are made again with their view. */
  redraw() {
    for (const name of Object.keys(this.views)) {
      const view = this.views[name];
      if (view.recolour) view.recolour();
      else if (view.picture) view.picture.again();
    }
    const overview = document.getElementById("view-overview");
    if (this.views.overview && overview) {
      fill(overview, el("h2", {}, "Overview"));
      drawOverview(this, overview);
    }
  }

  /* On paper there are all views, light, and of long tables the first rows. */
  print(on) {
    document.documentElement.toggleAttribute("data-printing", on);
    for (const [name] of VIEWS) {
      document.getElementById(`view-${name}`).hidden = on ? false : name !== this.view;
      if (on) this.draw(name);
      const view = this.views[name];
      if (view && view.picture) view.picture.now();
      if (view && view.resize) view.resize();
      if (view && view.grid) view.grid.print(on);
    }
  }
}

const page = new Page();
page.start().catch((error) => {
  document.documentElement.setAttribute("data-ready", "failed");
  fill(document.getElementById("main"), el("p", { class: "warning", role: "alert" },
    `This page could not be shown: ${error.message}. It needs a browser of 2023 or later.`));
});
