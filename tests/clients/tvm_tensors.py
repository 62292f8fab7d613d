"""Tensors of TVM's on the device, made, copied there and back and dropped: each is one allocation."""
import mark
import numpy
import tvm


def held(tensors):
    """Bytes of all."""
    return sum(int(numpy.prod(tensor.shape)) * numpy.dtype(str(tensor.dtype)).itemsize for tensor in tensors)


def main():
    """All of it."""
    device = tvm.cuda(0)
    print("exists", device.exist, "memory", device.total_global_memory)
    tensors = []
    for number in range(8):
        tensors.append(tvm.runtime.tensor(numpy.full((number + 1, 1000), number, dtype=("float32", "int64")[number % 2]), device))
        mark.live("tensors", held(tensors))
    print("sums", [float(tensor.numpy().sum()) for tensor in tensors])
    first = mark.live("before", held(tensors))
    del tensors[1::2]
    mark.live("half", held(tensors))
    tensors.append(tvm.runtime.empty((512, 512), "float16", device))
    tensors[-1].copyfrom(numpy.ones((512, 512), "float16"))
    mark.count("since", 1, since=first)
    mark.live("filled", held(tensors))
    print("back", int(tensors[-1].numpy().sum(dtype="int64")), [tuple(tensor.shape) for tensor in tensors])
    tensors.clear()
    mark.live("end", 0)


main()
