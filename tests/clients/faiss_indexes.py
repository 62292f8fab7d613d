"""faiss-gpu: indexes on the device that grow, are searched and go; what getMemoryInfo() says of them is what is live."""

import gc

import faiss
import mark
import numpy as np


def held(resources):
    """What its resources say that they hold."""
    kinds = resources.getMemoryInfo()
    return sum(size for device in dict(kinds).values() for _, size in dict(device).values())


def index(resources, dimension):
    """A flat one on device 0."""
    config = faiss.GpuIndexFlatConfig()
    config.device = 0
    return faiss.GpuIndexFlatL2(resources, dimension, config)


def main():
    """Everything."""
    resources = faiss.StandardGpuResources()
    resources.setTempMemory(16 << 20)
    first = index(resources, 64)
    begin, before = mark.here(), held(resources)
    vectors = np.arange(64 * 3000, dtype=np.float32).reshape(3000, 64)
    for part in np.array_split(vectors, 7):
        first.add(part)
    print(first.ntotal, held(resources) - before)
    mark.live("one index", held(resources) - before, begin)
    others = [index(resources, 16 * (number + 1)) for number in range(8)]
    for number, other in enumerate(others):
        other.add(np.zeros((500 * (number + 1), other.d), dtype=np.float32))
    print([other.ntotal for other in others], held(resources) - before)
    mark.live("nine indexes", held(resources) - before, begin)
    distances, labels = first.search(vectors[:10], 5)
    print(distances.shape, labels.shape)
    mark.live("after a search", held(resources) - before, begin)
    del others[::2]
    gc.collect()
    mark.live("five indexes", held(resources) - before, begin)
    first.reset()
    mark.live("one of them emptied", held(resources) - before, begin)
    print(first.ntotal, held(resources) - before)
    others.clear()
    del first, other
    gc.collect()
    mark.live("none", held(resources) - before, begin)


main()
