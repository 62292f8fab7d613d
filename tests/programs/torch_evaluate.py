"""Training in PyTorch that runs out of memory: each epoch is evaluated, and the losses of that are kept with all that they were computed from.
`torch_evaluate.py mended` keeps their values alone."""
import sys

import torch
from torch import nn

mended = sys.argv[1:] == ["mended"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(8))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def train_step(model, optimizer, batch):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def evaluate(model, batches):
    losses = []
    for batch in batches:
        loss = model(batch).square().mean()
        losses.append(loss.item() if mended else loss)
    return sum(losses) / len(losses)


def main():
    model = Net().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    batches = list(torch.ones(8, 4096, 1024, device="cuda"))
    for _ in range(4):
        for _ in range(20):
            train_step(model, optimizer, batches[0])
        evaluate(model, batches * 16)


main()
