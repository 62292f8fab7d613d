"""A generation loop in PyTorch: prompts of several lengths, a cache of keys and values that grows with each word, and what a program forgets to let go.

Every prompt's last scores are kept by mistake, where nothing in Python holds them any more: uncached they are the blocks that the report has to find.
"""
import ctypes

import mark
import torch
import torch_books as books
from torch import nn
from torch.nn import functional

DEVICE = "cuda"
VOCABULARY, WIDTH, HEADS, DEPTH = 4000, 256, 4, 3


class Layer(nn.Module):
    """Attention over what was cached, and a wide layer."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cached):
        """The output, and the cache with these words behind it."""
        rows, length, _ = x.shape
        query, key, value = self.mix(x).view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if cached is not None:
            key, value = torch.cat([cached[0], key], 2), torch.cat([cached[1], value], 2)
        scores = (query @ key.transpose(-2, -1)).softmax(-1)
        x = x + self.join((scores @ value).transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.wide(x), (key.contiguous(), value.contiguous())


class Model(nn.Module):
    """Words to scores of the next one."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(DEPTH)])
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, cache):
        """Scores of the last word, and the cache."""
        x = self.words(ids)
        for number, layer in enumerate(self.layers):
            x, cache[number] = layer(x, cache[number])
        return functional.log_softmax(self.head(x[:, -1]), -1), cache


def forget(tensor):
    """Leaks it: a reference more, which nobody has."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
    return tensor.untyped_storage().nbytes()


@torch.no_grad()
def generate(model, prompt, words, rows):
    """What it forgets, in bytes."""
    ids, cache = torch.zeros(rows, prompt, dtype=torch.long, device=DEVICE), [None] * DEPTH
    for word in range(words):
        scores, cache = model(ids, cache)
        ids = torch.zeros(rows, 1, dtype=torch.long, device=DEVICE)
        if word % 16 == 15:
            mark.live("prompt %d word %d" % (prompt, word), books.live(1))
    print("prompt", prompt, tuple(scores.shape), "cache", [tuple(key.shape) for key, _ in cache], books.counters(), books.segments(), flush=True)
    return forget(scores)


def main():
    """All of it."""
    model = Model().to(DEVICE).eval()
    forgotten = sum(generate(model, prompt, 48, 1 + prompt % 3) for prompt in (5, 64, 17, 256))
    del model
    books.forget()
    mark.live("end", books.live(1))
    print("forgotten", forgotten, books.counters(), books.segments())
    kept = torch.cuda.memory_reserved() if books.caching() else forgotten
    mark.leaks("forgotten and the handle of cuBLAS", kept + books.HANDLE_BYTES)
    if not books.caching():
        mark.site("log_softmax", forgotten)


main()
