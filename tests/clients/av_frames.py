"""PyAV, with FFmpeg in its wheel, which opens the driver by itself: pictures are uploaded to frames on the device and downloaded again, in graphs of filters; what is live is what
the frames on the device say of their planes."""

import gc
from fractions import Fraction

import av
import mark
import numpy as np
from av.filter import Graph


def graph(width, height, *filters):
    """A chain of filters, from pictures to a sink."""
    made = Graph()
    nodes = [made.add_buffer(width=width, height=height, format="nv12", time_base=Fraction(1, 25))]
    nodes += [made.add(*name.split("=")) for name in filters] + [made.add("buffersink")]
    for one, other in zip(nodes, nodes[1:]):
        one.link_to(other)
    made.configure()
    return made


def pictures(width, height, count):
    """Random ones."""
    random = np.random.default_rng(width)
    for number in range(count):
        frame = av.VideoFrame.from_ndarray(random.integers(0, 255, (height * 3 // 2, width), dtype=np.uint8), "nv12")
        frame.pts = number
        yield frame


def there_and_back(width, height, count):
    """Up and down; what comes back is what went."""
    chain = graph(width, height, "hwupload_cuda", "hwdownload", "format=nv12")
    for frame in pictures(width, height, count):
        chain.push(frame)
        back = chain.pull()
        assert back.pts == frame.pts and (back.to_ndarray() == frame.to_ndarray()).all(), "the picture differs"
    print(width, height, count, back.format.name)


def kept(width, height, count, begin):
    """Frames that stay on the device."""
    chain = graph(width, height, "hwupload_cuda")
    frames = []
    for frame in pictures(width, height, count):
        chain.push(frame)
        frames.append(chain.pull())
    lines = [plane.line_size for plane in frames[0].planes]
    print(frames[0].format.name, lines)
    mark.live("frames", count * lines[0] * height * 3 // 2, begin)
    mark.count("frames", count, begin)
    del frames[::2]
    gc.collect()
    mark.live("frames go back to their graph's pool", count * lines[0] * height * 3 // 2, begin)
    frames.clear()
    del chain, frame
    gc.collect()


def main():
    """Everything."""
    begin = mark.here()
    for width, height in ((320, 240), (1920, 1080), (642, 362)):
        there_and_back(width, height, 8)
    gc.collect()
    mark.live("after the graphs", 0, begin)
    kept(1280, 720, 12, mark.here())
    mark.live("at the end", 0, begin)


main()
