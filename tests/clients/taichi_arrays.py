"""Taichi, which opens the driver by itself (and is loaded with RTLD_DEEPBIND, so memshim follows it with MEMSHIM_DEEPBIND=clear): arrays and fields, kernels compiled to PTX; what
is live is what the arrays say of their sizes."""

import gc

import mark
import taichi as ti


@ti.kernel
def double(array: ti.types.ndarray()):
    """A kernel; on the simulated device it computes nothing."""
    for i in ti.grouped(array):
        array[i] = array[i] * 2


def size(array):
    """What an array of floats takes: its allocator's pages are of 4 KiB."""
    return (4 * array.shape[0] * array.shape[1] + 4095) // 4096 * 4096


def main():
    """Everything."""
    ti.init(arch=ti.cuda, offline_cache=False)
    ti.ndarray(ti.f32, shape=(8, 8)).to_numpy()
    gc.collect()
    begin = mark.here()
    arrays = [ti.ndarray(ti.f32, shape=(64 * (number + 1), 33)) for number in range(12)]
    mark.live("arrays", sum(size(array) for array in arrays), begin)
    double(arrays[3])
    ti.sync()
    mark.live("after a kernel", sum(size(array) for array in arrays), begin)
    print([array.shape for array in arrays], arrays[5].to_numpy().shape)
    del arrays[::2]
    gc.collect()
    mark.live("half of them", sum(size(array) for array in arrays), begin)
    field = ti.field(ti.f32, shape=(512, 512))
    field.fill(1.0)
    ti.sync()
    mark.live("with a field", sum(size(array) for array in arrays) + 4 * 512 * 512, begin)
    print(field.shape)
    arrays.clear()
    gc.collect()
    ti.reset()


main()
