/* stacks.js - the tree of a flame graph: weighed, turned upside down, laid out, searched. Pure. */

const MIXED = -2, NOBODY = -1;

/* The tree as it was recorded, the outermost frame at the root. leaf[site] is the site's node. */
function recordedTree(report) {
  return { parent: report.column("node.parent"), frame: report.column("node.frame"), leaf: report.column("site.node") };
}

/* By name: equal names of different frames are one, as in any other flame graph. */
function frameNames(report) {
  return report.column("frame.name");
}

/* The same stacks from the innermost frame on; weights then lie at the end of the turned stack. */
function invertedTree(report, values) {
  const parent = report.column("node.parent"), frame = report.column("node.frame");
  const leaf = report.column("site.node"), turned = new Uint32Array(leaf.length);
  let steps = 1, mask = 1023;
  for (let site = 0; site < leaf.length; site++)
    for (let node = values[site] > 0 ? leaf[site] : 0; node > 0; node = parent[node]) steps++;
  while (mask < 2 * steps) mask = 2 * mask + 1;
  const slots = new Uint32Array(mask + 1), up = new Uint32Array(steps + 1), of = new Uint32Array(steps + 1);
  let count = 1;
  for (let site = 0; site < leaf.length; site++) {
    if (!(values[site] > 0)) continue;
    let here = 0;
    for (let node = leaf[site]; node > 0; node = parent[node]) {
      let at = (Math.imul(here, 0x9e3779b1) ^ Math.imul(frame[node] + 1, 0x85ebca6b)) >>> 0;
      at = (at ^ at >>> 15) & mask;
      while (slots[at] && (up[slots[at]] !== here || of[slots[at]] !== frame[node])) at = (at + 1) & mask;
      if (!slots[at]) {
        slots[at] = count;
        up[count] = here;
        of[count++] = frame[node];
      }
      here = slots[at];
    }
    turned[site] = here;
  }
  return { parent: up.subarray(0, count), frame: of.subarray(0, count), leaf: turned };
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
