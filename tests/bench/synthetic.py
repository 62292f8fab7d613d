#!/usr/bin/env python3
"""Makes up traces (docs/user/trace.md) that are like what programs of several kinds ask for: synthetic.py DIRECTORY FIRST [LAST].

For each kind and each seed from FIRST to LAST a file KIND-SEED.trace; a seed always makes the same trace. They are for trying out
how blocks are placed on something that nobody looked at before: choose rules on some seeds, and judge them on others.
"""

import os
import random
import sys

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MOST_LIVE, MOST_EVENTS = 40 * GIB, 40000


class Trace:
    """Events, and what is live after them."""

    def __init__(self):
        self.lines, self.blocks, self.count, self.live, self.peak = [], {}, 0, 0, 0

    def take(self, size, stream=0):
        """A new block's number."""
        size = max(1, int(size))
        self.count += 1
        self.blocks[self.count] = size, stream
        self.live += size
        self.peak = max(self.peak, self.live)
        self.lines.append(f"{len(self.lines)} a {self.count} {size} {stream}")
        return self.count

    def give(self, *blocks):
        """Frees them in this order."""
        for block in blocks:
            size, stream = self.blocks.pop(block)
            self.live -= size
            self.lines.append(f"{len(self.lines)} f {block} {size} {stream}")

    def briefly(self, size, stream=0):
        """A block that is freed at once."""
        self.give(self.take(size, stream))


def attention(rng, trace, rows, columns, inner, heads, sequence, element):
    """One layer of a transformer, forward: what the way back needs, and the result."""
    wide, scores = rows * columns * element, rows * sequence * heads * element
    kept = [trace.take(wide), trace.take(rows * 4), trace.take(3 * wide), trace.take(scores), trace.take(scores)]
    if rng.random() < 0.5:
        trace.give(kept.pop())
    kept.append(trace.take(wide))
    projected, result = trace.take(wide), trace.take(wide)
    trace.give(projected)
    kept += [trace.take(wide), trace.take(rows * inner * element), trace.take(rows * inner * element)]
    second = trace.take(wide)
    out = trace.take(wide)
    trace.give(second)
    return kept + [result], out


def backward(rng, trace, layers, sizes, gradients, wide):
    """The way back: each layer's gradients come, what it kept goes."""
    above = trace.take(wide)
    for number, kept in reversed(list(enumerate(layers))):
        for key in range(number * 6, number * 6 + 6):
            gradient = trace.take(sizes[key])
            if key in gradients:
                trace.give(gradient)
            else:
                gradients[key] = gradient
            trace.briefly(wide * rng.choice([1, 3, 4]))
            if kept and rng.random() < 0.9:
                trace.give(kept.pop())
        below = trace.take(wide)
        trace.give(*reversed(kept), above)
        above = below
    trace.give(above)


def training(rng, trace, varied=False):
    """Steps of training a transformer; with lengths that vary, or not."""
    count, columns, element = rng.randint(2, 24), rng.choice([128, 256, 512, 768, 1024, 2048]), rng.choice([2, 4])
    inner, heads, words = columns * rng.choice([2, 3, 4]), max(1, columns // 64), rng.choice([1000, 8000, 30522, 50257])
    length = rng.choice([64, 128, 256, 512, 1024])
    batch = min(rng.choice([1, 4, 8, 16, 32]), max(1, 8192 // length))
    layer = [3 * columns * columns, 3 * columns, columns * columns, columns * inner, inner, inner * columns]
    sizes = [4 * weights for weights in layer * count] + [4 * words * columns]
    for size in sizes:
        trace.take(size)
    gradients, moments, stay = {}, [], rng.random() < 0.5
    for _ in range(rng.randint(3, 8)):
        now = rng.randint(max(8, length // 4), length) if varied else length
        rows, inputs = batch * now, [trace.take(batch * now * 8) for _ in range(2)]
        kept, result = [], trace.take(rows * columns * element)
        for _ in range(count):
            layers, out = attention(rng, trace, rows, columns, inner, heads, now, element)
            kept.append(layers + [result])
            result = out
        logits = [trace.take(rows * words * width) for width in (element, 4, element)]
        trace.give(*logits, result)
        backward(rng, trace, kept, sizes, gradients, rows * columns * element)
        trace.briefly(sizes[-1])
        moments = moments or [trace.take(size) for size in sizes for _ in range(2)]
        for size in sizes[:40]:
            trace.briefly(size)
        trace.give(*inputs)
        if not stay:
            trace.give(*gradients.values())
            gradients = {}


def convolutions(rng, trace):
    """Steps of training a convolutional network, with workspaces."""
    channels, side, batch, element = rng.choice([16, 32, 64]), rng.choice([64, 112, 224]), rng.choice([4, 8, 16, 32, 64]), 4
    shapes = []
    for _ in range(rng.randint(3, 5)):
        shapes += [(channels, side)] * rng.randint(1, 4)
        channels, side = channels * 2, max(4, side // 2)
    weights = [wide * wide * 9 * element for wide, _ in shapes]
    for size in weights:
        trace.take(size)
    moments = []
    for _ in range(rng.randint(3, 7)):
        now = batch if rng.random() < 0.8 else rng.randint(1, batch)
        outputs = [now * wide * across * across * element for wide, across in shapes]
        kept = [trace.take(outputs[0])]
        for size in outputs:
            kept.append(trace.take(size))
            trace.briefly(rng.choice([1, 2, 4, 8, 24, 60]) * MIB + rng.randint(0, 4) * 1000)
            kept.append(trace.take(size))
        gradients, above = [], trace.take(outputs[-1])
        for size, weight in reversed(list(zip(outputs, weights))):
            below = trace.take(size)
            workspace = trace.take(rng.choice([1, 2, 8, 24, 60]) * MIB)
            gradients.append(trace.take(weight))
            trace.give(workspace, above, kept.pop(), kept.pop())
            above = below
        moments = moments or [trace.take(size) for size in weights]
        trace.give(above, *reversed(kept), *gradients)


def decoding(rng, trace):
    """Text is generated: keys and values that grow, by copies or by blocks."""
    count, columns, how = rng.randint(4, 32), rng.choice([512, 1024, 2048, 4096]), rng.choice(["copy", "double", "blocks"])
    for _ in range(count):
        trace.take(columns * columns * rng.choice([2, 6, 8]))
    for _ in range(rng.randint(2, 6)):
        batch, length = rng.randint(1, 16), rng.randint(16, 600)
        prompt = [trace.take(batch * length * columns * width) for width in (2, 6, 8)]
        pairs = [[trace.take(batch * length * columns * 2) for _ in range(2)] for _ in range(count)]
        trace.give(*prompt)
        room = length
        for now in range(length + 1, length + rng.randint(6, 40)):
            grows = how == "copy" or (how == "double" and now > room) or (how == "blocks" and now % 16 == 0)
            room = room * 2 if how == "double" and now > room else room
            for pair in pairs:
                small = [trace.take(batch * columns * 6), trace.take(batch * (columns // 64) * now * 4)]
                for i in range(2 if grows else 0):
                    longer = trace.take(batch * (room if how == "double" else now) * columns * 2)
                    trace.give(pair[i])
                    pair[i] = longer
                trace.give(*small)
            trace.briefly(batch * 32000 * 4)
        for pair in pairs:
            trace.give(*pair)


def tables(rng, trace):
    """Columns of tables: filtered, joined, sorted and grouped."""
    scale, kept = rng.choice([0.2, 1, 3]), []
    for _ in range(rng.randint(3, 6)):
        rows = int(rng.lognormvariate(14.5, 0.8) * scale) + 1000
        kept.append((rows, [trace.take(rows * rng.choice([1, 4, 8])) for _ in range(rng.randint(2, 10))]))
    for _ in range(rng.randint(40, 250)):
        rows, columns = rng.choice(kept)
        what = rng.random()
        if len(kept) > 8 or (what < 0.2 and len(kept) > 2):
            trace.give(*kept.pop(rng.randrange(len(kept)))[1])
            continue
        helpers = [trace.take(rows * width) for width in rng.choice([(1, 4), (16,), (4, 8, 8), (8,)])]
        left = int(rows * rng.random()) + 1 if what < 0.8 else rows
        result = [trace.take(left * rng.choice([1, 4, 8])) for _ in range(min(8, len(columns)))]
        trace.give(*helpers)
        if rng.random() < 0.7:
            kept.append((left, result))
        else:
            trace.give(*result)


def frames(rng, trace):
    """Pictures of some sizes go through steps, on a few streams."""
    steps, streams, queue = rng.randint(2, 5), rng.randint(1, 4), []
    shapes = [rng.randint(320, 3840) * rng.randint(240, 2160) * 3 for _ in range(rng.randint(1, 5))]
    for _ in range(rng.randint(5, 60)):
        trace.take(rng.lognormvariate(14, 1.5))
    for number in range(rng.randint(60, 300)):
        stream, size = number % streams, rng.choice(shapes) * rng.randint(1, 4)
        picture = trace.take(size, stream)
        for _ in range(steps):
            after = trace.take(size * rng.choice([1, 2, 4]) // rng.choice([1, 2, 4]), stream)
            trace.briefly(rng.lognormvariate(13, 2), stream)
            trace.give(picture)
            picture = after
        queue.append(picture)
        if len(queue) > rng.randint(1, 6):
            trace.give(queue.pop(0))


def fields(rng, trace):
    """A solver: large fields, refinements that come and go."""
    base, levels = rng.choice([64, 128, 192]) ** 3 * 8, []
    for _ in range(rng.randint(4, 14)):
        trace.take(base * rng.choice([1, 1, 3]))
    for step in range(rng.randint(10, 60)):
        scratch = [trace.take(base * rng.choice([1, 3])) for _ in range(rng.randint(1, 4))]
        if step % rng.randint(2, 6) == 0:
            trace.give(*levels)
            part = rng.uniform(0.02, 0.5)
            levels = [trace.take(base * part * rng.choice([1, 3]) + rng.randint(0, 4096)) for _ in range(rng.randint(4, 16))]
        trace.give(*[trace.take(rng.randint(10, 2000) * KIB) for _ in range(rng.randint(0, 8))], *scratch)


def small(rng, trace):
    """Small blocks, few of them long-lived."""
    for _ in range(rng.randint(10, 300)):
        trace.take(rng.lognormvariate(11, 2))
    for _ in range(rng.randint(20, 100)):
        trace.give(*[trace.take(rng.lognormvariate(12, 1.3)) for _ in range(rng.randint(3, 30))])


def chance(rng, trace):
    """Sizes and lifetimes by chance."""
    most, cap, live = rng.choice([1, 4, 16, 64, 256, 1024]) * MIB, rng.choice([1, 4, 16]) * GIB, []
    few, kind = [rng.randint(1, most) for _ in range(rng.randint(3, 40))], rng.choice(["uniform", "logarithmic", "few"])
    for _ in range(rng.choice([1000, 4000])):
        size = {"uniform": rng.randint(1, most), "logarithmic": int(2 ** rng.uniform(9, most.bit_length() - 1)), "few": rng.choice(few)}[kind]
        if rng.random() < 0.73 and trace.live + size <= cap:
            live.append(trace.take(size))
        elif live:
            place = rng.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            trace.give(live.pop())


KINDS = {"training": training, "lengths": lambda rng, trace: training(rng, trace, True), "convolutions": convolutions,
         "decoding": decoding, "tables": tables, "frames": frames, "fields": fields, "small": small, "chance": chance}


def make(kind, seed):
    """The first that is not too large."""
    for attempt in range(1000):
        trace = Trace()
        KINDS[kind](random.Random(f"{kind} {seed} {attempt}"), trace)
        if trace.peak <= MOST_LIVE and len(trace.lines) <= MOST_EVENTS:
            break
    trace.give(*trace.blocks.copy())
    return trace


def main():
    """Files in a directory."""
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: synthetic.py DIRECTORY FIRST [LAST]")
    os.makedirs(sys.argv[1], exist_ok=True)
    for kind in KINDS:
        for seed in range(int(sys.argv[2]), int(sys.argv[-1]) + 1):
            with open(os.path.join(sys.argv[1], f"{kind}-{seed}.trace"), "w", encoding="ascii") as file:
                file.write(f"# memshim 0, run 0: {kind}-{seed}, process 0\n# columns: microseconds op(a|f) id bytes stream\n" + "\n".join(make(kind, seed).lines) + "\n")


if __name__ == "__main__":
    main()
