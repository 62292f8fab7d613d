"""Dr.Jit, which opens the driver by itself and has an allocator of its own, whose blocks are powers of two: arrays to the device and back, freed into its cache, and the cache
given back. A book of these sizes against what is live."""

import gc

import drjit as dr
import drjit.cuda as cuda
import mark
import numpy as np


def block(array):
    """What the allocator takes for it."""
    size = 4 * len(array)
    return 1 << (size - 1).bit_length()


def main():
    """Everything."""
    begin = mark.here()
    arrays = [cuda.Float(np.arange(1000 * (number + 1), dtype=np.float32)) for number in range(20)]
    arrays += [cuda.UInt(np.arange(300000 + number, dtype=np.uint32)) for number in range(3)]
    dr.eval(arrays)
    dr.sync_thread()
    assert (arrays[3].numpy() == np.arange(4000)).all(), "the copy differs"
    most = sum(block(array) for array in arrays)
    mark.live("arrays", most, begin)
    print([len(array) for array in arrays])
    arrays = arrays[::2]
    gc.collect()
    dr.sync_thread()
    mark.live("with what is cached", most, begin)
    dr.flush_malloc_cache()
    mark.live("cache given back", sum(block(array) for array in arrays), begin)
    more = [array + 1 for array in arrays]
    dr.eval(more)
    dr.sync_thread()
    last = sum(block(array) for array in arrays + more)
    mark.live("computed", last, begin)
    mark.peak("most", max(most, last), begin)
    print(len(more), sum(len(array) for array in more))
    arrays, more = [], []
    gc.collect()
    dr.flush_malloc_cache()
    mark.live("at the end", 0, begin)


main()
