/* stacks.js - the tree of a flame graph: weighed, turned upside down, laid out, searched. Pure. */

const MIXED = -2, NOBODY = -1;

/* For each frame the first one of the same function in the same file: calls from several lines are one frame
 * of a flame graph. */
function sameFrames(report) {
  const name = report.column("frame.name"), file = report.column("frame.file"), first = new Map();
  return Uint32Array.from(name, (_, frame) => {
    const key = name[frame] * 4294967296 + file[frame];
    if (!first.has(key)) first.set(key, frame);
    return first.get(key);
  });
}

/* A tree that grows by the child of a node with a frame; a parent precedes its children. */
class Grown {
  constructor(most) {
    let mask = 1023;
    while (mask < 2 * most) mask = 2 * mask + 1;
    this.mask = mask;
    this.slots = new Uint32Array(mask + 1);
    this.up = new Uint32Array(most + 1);
    this.of = new Uint32Array(most + 1);
    this.count = 1;
  }

  child(parent, frame) {
    let at = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame + 1, 0x85ebca6b)) >>> 0;
    at = (at ^ at >>> 15) & this.mask;
    while (this.slots[at] && (this.up[this.slots[at]] !== parent || this.of[this.slots[at]] !== frame)) at = (at + 1) & this.mask;
    if (!this.slots[at]) {
      this.slots[at] = this.count;
      this.up[this.count] = parent;
      this.of[this.count++] = frame;
    }
    return this.slots[at];
  }

  tree(leaf) {
    return { parent: this.up.subarray(0, this.count), frame: this.of.subarray(0, this.count), leaf };
  }
}

/* The tree of the stacks, the outermost frame at the root; leaf[site] is the site's node. */
function outerTree(report) {
  const parent = report.column("node.parent"), frame = report.column("node.frame"), same = sameFrames(report);
  const grown = new Grown(parent.length), now = new Uint32Array(parent.length);
  for (let node = 1; node < parent.length; node++) now[node] = grown.child(now[parent[node]], same[frame[node]]);
  return grown.tree(Uint32Array.from(report.column("site.node"), (node) => now[node]));
}

/* The same stacks from the innermost frame on, of sites that weigh something. */
function innerTree(report, values) {
  const parent = report.column("node.parent"), frame = report.column("node.frame"), same = sameFrames(report);
  const leaf = report.column("site.node"), turned = new Uint32Array(leaf.length);
  let steps = 1;
  for (let site = 0; site < leaf.length; site++)
    for (let node = values[site] > 0 ? leaf[site] : 0; node > 0; node = parent[node]) steps++;
  const grown = new Grown(steps);
  for (let site = 0; site < leaf.length; site++)
    for (let node = values[site] > 0 ? leaf[site] : 0; node > 0; node = parent[node]) turned[site] = grown.child(turned[site], same[frame[node]]);
  return grown.tree(turned);
}

/* What each node weighs with all below it, and the owner of all of that, if there is one. */
function weigh(tree, values, owners) {
  const count = tree.parent.length, weight = new Float64Array(count), owner = new Int32Array(count).fill(NOBODY);
  const join = (node, other) => {
    if (other !== NOBODY) owner[node] = owner[node] === NOBODY || owner[node] === other ? other : MIXED;
  };
  for (let site = 0; site < tree.leaf.length; site++) {
    if (!(values[site] > 0)) continue;
    weight[tree.leaf[site]] += values[site];
    join(tree.leaf[site], owners[site]);
  }
  for (let node = count - 1; node > 0; node--) {
    weight[tree.parent[node]] += weight[node];
    join(tree.parent[node], owner[node]);
  }
  return { weight, owner };
}

/* Children of every node, heaviest first: of node n those from first[n] to first[n + 1] in list. */
function childrenOf(tree, weight) {
  const count = tree.parent.length, first = new Uint32Array(count + 2), list = new Uint32Array(count);
  for (let node = 1; node < count; node++) if (weight[node] > 0) first[tree.parent[node] + 2]++;
  for (let node = 2; node < count + 2; node++) first[node] += first[node - 1];
  for (let node = 1; node < count; node++)
    if (weight[node] > 0) list[first[tree.parent[node] + 1]++] = node;
  const begin = first.subarray(0, count + 1);
  for (let node = 0; node < count; node++)
    if (begin[node + 1] - begin[node] > 1)
      list.subarray(begin[node], begin[node + 1]).sort((a, b) => weight[b] - weight[a] || a - b);
  return { first: begin, list };
}

/* Rectangles that are at least `least` wide: the frames above the zoomed node as wide as all, it and what is
 * below it by weight. Flat: node, depth, x, width of each. */
function layOut(tree, weight, children, zoom, width, least) {
  const above = [], rects = [];
  for (let node = zoom; ; node = tree.parent[node]) {
    above.push(node);
    if (node === 0) break;
  }
  above.reverse();
  above.forEach((node, depth) => rects.push(node, depth, 0, width));
  const scale = weight[zoom] > 0 ? width / weight[zoom] : 0, todo = [zoom, above.length - 1, 0];
  while (todo.length) {
    let x = todo.pop();
    const depth = todo.pop() + 1, node = todo.pop();
    for (let i = children.first[node]; i < children.first[node + 1]; i++) {
      const child = children.list[i], wide = weight[child] * scale;
      if (wide < least) break;
      rects.push(child, depth, x, wide);
      todo.push(child, depth, x);
      x += wide;
    }
  }
  return rects;
}

/* For each frame whether its text holds what is looked for, in any case. */
function matchFrames(report, wanted) {
  const count = report.column("frame.name").length, found = new Uint8Array(count), texts = new Map();
  const lower = wanted.toLowerCase();
  if (!lower) return found;
  for (let frame = 0; frame < count; frame++) {
    const name = report.column("frame.name")[frame], file = report.column("frame.file")[frame];
    for (const text of [name, file])
      if (!texts.has(text)) texts.set(text, (report.strings[text] || "").toLowerCase().includes(lower));
    found[frame] = texts.get(name) || texts.get(file) ? 1 : 0;
  }
  return found;
}

/* What weighs in stacks that hold a found frame: each stack once. */
function matchedWeight(tree, weight, found) {
  const inside = new Uint8Array(tree.parent.length);
  let sum = 0;
  for (let node = 1; node < tree.parent.length; node++) {
    inside[node] = inside[tree.parent[node]];
    if (!inside[node] && found[tree.frame[node]]) {
      inside[node] = 1;
      sum += weight[node];
    }
  }
  return sum;
}
