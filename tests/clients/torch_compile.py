"""torch.compile: kernels that Triton makes while the program runs (they need no GPU to be made), with a graph for each shape, forwards and backwards."""
import gc

import mark
import torch
import torch_books as books

DEVICE = "cuda"


def layer(x, weight, bias):
    """What is fused into one kernel, around a product."""
    y = torch.nn.functional.gelu(x @ weight + bias)
    return (y * torch.sigmoid(y)).sum(-1)


def main():
    """All of it."""
    compiled = torch.compile(layer, dynamic=False)
    weight = torch.zeros(256, 512, device=DEVICE, requires_grad=True)
    bias = torch.zeros(512, device=DEVICE, requires_grad=True)
    for rows in (64, 64, 300):
        out = compiled(torch.zeros(rows, 256, device=DEVICE), weight, bias)
        out.sum().backward()
        print(rows, tuple(out.shape), tuple(weight.grad.shape), books.counters(), books.segments(), flush=True)
        weight.grad = bias.grad = out = None
        mark.live("rows %d" % rows, books.live(2))
    del weight, bias, out
    gc.collect()
    books.forget()
    print("end", books.counters(), books.segments())
    mark.leaks("handles of cuBLAS", 2 * books.HANDLE_BYTES)


main()
