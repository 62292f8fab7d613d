"""Ten training steps of a small transformer in PyTorch, in whatever allocator it was told to use.

Where PyTorch caches, what it reserved is what is live. Where it does not, every storage is a block, and all of them are known, in the middle of a step too."""
import gc

import mark
import torch
import torch_books as books
from torch import nn
from torch.nn import functional

DEVICE = "cuda"
VOCABULARY, WIDTH, HEADS, DEPTH, LENGTH = 2048, 256, 8, 4, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)
        self.after = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.back = nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x):
        rows, length, _ = x.shape
        query, key, value = self.mix(x).view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        mixed = scores.masked_fill(mask, float("-inf")).softmax(-1) @ value
        return self.join(mixed.transpose(1, 2).reshape(rows, length, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.back(functional.gelu(self.wide(self.after(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.last = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.last(self.blocks(x)))


def step(number, model, optimizer):
    """One; there is a handle of cuBLAS's for this thread, and from the first backward pass on one for the thread of that."""
    rows = 8 + number % 3
    ids = torch.zeros(rows, LENGTH, dtype=torch.long, device=DEVICE)
    with books.Saved() as saved:
        scores = model(ids)
        loss = functional.cross_entropy(scores.view(-1, VOCABULARY), ids.view(-1))
    mark.live("forward %d" % number, books.live(2 if number else 1, saved))
    loss.backward()
    mark.live("backward %d" % number, books.live(2))
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("step", number, tuple(scores.shape), books.counters(), books.segments(), flush=True)
    del ids, scores, loss
    mark.live("step %d" % number, books.live(2))


def main():
    """All of it."""
    model = Transformer().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for number in range(10):
        step(number, model, optimizer)
    print("parameters", sum(p.numel() for p in model.parameters()), "state", len(optimizer.state), "storages", sum(books.storages().values()))
    books.measure()
    del model, optimizer
    books.forget()
    mark.live("end", books.live(2))
    print("end", books.counters(), books.segments())
    mark.leaks("handles of cuBLAS", 2 * books.HANDLE_BYTES)


main()
