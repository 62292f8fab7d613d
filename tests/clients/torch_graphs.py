"""Captured graphs with private pools in PyTorch: two that share one, one of its own, replayed, and let go again; what is reserved is live at every point."""
import gc

import mark
import torch
import torch_books as books

DEVICE = "cuda"


def capture(x, weight, pool=None):
    """A graph of a few products, and its result."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        y = x
        for _ in range(4):
            y = torch.tanh(y @ weight) + x
        total = y.sum(0)
    return graph, total


def say(what, handles):
    """Counters, and the claim."""
    print(what, books.counters(), books.segments(), flush=True)
    if books.caching():
        mark.live(what, books.live(handles))


def main():
    """All of it. A graph is captured on a stream of its own, which has a handle of cuBLAS's."""
    x, weight = torch.zeros(2048, 512, device=DEVICE), torch.zeros(512, 512, device=DEVICE)
    torch.tanh(x @ weight)
    say("warm", 1)
    first, one = capture(x, weight)
    say("one", 1)
    second, two = capture(x, weight, first.pool())
    say("two", 1)
    third, three = capture(x[:1000], weight)
    say("three", 1)
    for graph in (first, second, third, first):
        graph.replay()
    torch.cuda.synchronize()
    print(tuple(one.shape), tuple(two.shape), tuple(three.shape))
    del first, one
    gc.collect()
    torch.cuda.empty_cache()
    say("without the first", 1)
    second.replay()
    del second, two, third, three, graph
    books.forget()
    say("without any", 1)
    mark.leaks("what is left", (torch.cuda.memory_reserved() if books.caching() else sum(books.storages().values())) + books.HANDLE_BYTES)


main()
