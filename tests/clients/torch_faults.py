"""Mistakes that programs make with PyTorch's memory, one at a time, and their clean twins: torch_faults.py NAME [clean].

Each is what people write: a training loop, requests that are answered, a validation. What memshim finds of each is judged by kit/faults.py: one finding, with the line that is
marked here, and nothing of the twin.
"""
import os
import sys
import time

import torch
from torch import nn

DEVICE = "cuda"
MIB = 1 << 20
WIDTH, LAYERS, STEPS = 256, 6, 200


class Net(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(self.norm(x)))
        return x


def batch(rows=64):
    """What a program's own work takes is not on the simulated device: so steps come one by one, as they do elsewhere."""
    time.sleep(0.01)
    return torch.ones(rows, WIDTH, device=DEVICE)


def losses(clean):
    """A list keeps each step's loss, and with it all that its graph needs."""
    model, kept = Net().to(DEVICE), []
    for _ in range(STEPS):
        loss = model(batch()).square().mean()  # line: losses
        kept.append(loss.item() if clean else loss)


def requests(clean):
    """A cache that is never emptied; its twin forgets the oldest, from the eighth on."""
    model, cache = Net().to(DEVICE), {}
    for number in range(STEPS):
        with torch.no_grad():
            cache[number] = model(batch())  # line: requests
        if clean and len(cache) > 8:
            del cache[number - 8]


def pinning(clean):
    """A small tensor lies in a segment of 1 GiB: when another of that size is asked for, the segment is of no use."""
    small = None
    for _ in range(2):
        large = torch.empty(1024 * MIB, dtype=torch.uint8, device=DEVICE)
        del large
        if not clean:
            small = torch.empty(4 * MIB, dtype=torch.uint8, device=DEVICE)  # line: pinning
    large = torch.empty(1024 * MIB, dtype=torch.uint8, device=DEVICE)
    del large
    print("ended", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), small is None, flush=True)
    os._exit(0)  # as a server's worker ends: nothing is given back


def optimizer(clean):
    """Adam's state is twice the parameters, and comes at the first step; plain SGD has none."""
    model = Net(2048).to(DEVICE)
    chosen = (torch.optim.SGD if clean else torch.optim.Adam)(model.parameters(), lr=1e-3)
    for _ in range(5):
        model(torch.ones(8, 2048, device=DEVICE)).square().mean().backward()
        chosen.step()  # line: optimizer
        chosen.zero_grad()


def train_step(model, chosen):
    model(batch()).square().mean().backward()
    chosen.step()
    chosen.zero_grad()


def validate(model, clean):
    with torch.set_grad_enabled(not clean):
        return model(batch(8192)).square().mean().item()  # line: validation


def validation(clean):
    """Nothing of a validation is needed for a backward pass, and it is kept all the same where grad mode is on."""
    model = Net().to(DEVICE)
    chosen = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(3):
        for _ in range(4):
            train_step(model, chosen)
        validate(model, clean)


def retained(clean):
    """The graph of each step hangs on the state of the one before it, as it does where a recurrent net's state is not detached."""
    model = Net().to(DEVICE)
    chosen = torch.optim.SGD(model.parameters(), lr=1e-3)
    state = batch()
    for _ in range(STEPS):
        state = model(state.detach() if clean else state)  # line: retained
        state.square().mean().backward(retain_graph=not clean)
        chosen.zero_grad()


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 64 * STEPS

    def __getitem__(self, number):
        return torch.zeros(16384)


def loader(clean):
    """Batches in pinned memory, each of which is kept."""
    kept = []
    torch.zeros(1, device=DEVICE)
    for rows in torch.utils.data.DataLoader(Rows(), batch_size=16, pin_memory=True):  # line: loader
        rows.to(DEVICE, non_blocking=True)
        if not clean:
            kept.append(rows)


def steady(_):
    """Nothing is wrong: a model is loaded, warmed up and trained, a cache fills to its bound, and the last batch is smaller."""
    model, cache = Net().to(DEVICE), {}
    chosen = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for number in range(STEPS):
        rows = 16 if number == STEPS - 1 else 64
        model(batch(rows)).square().mean().backward()
        chosen.step()
        chosen.zero_grad()
        if number % 2 == 0 and len(cache) < 40:
            cache[number] = torch.ones(256, WIDTH, device=DEVICE)


FAULTS = {function.__name__: function for function in (losses, requests, pinning, optimizer, validation, retained, loader, steady)}
kept = FAULTS[sys.argv[1]](sys.argv[2:] == ["clean"])
torch.cuda.synchronize()
print(sys.argv[1:], "ended", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
