"""Training steps of a transformer in PyTorch with a batch of so many sequences: torch_steps.py BATCH. Prints how much PyTorch reserved, in bytes."""
import sys

import torch
from torch import nn
from torch.nn import functional

DEVICE, VOCABULARY, WIDTH, LENGTH, STEPS = "cuda", 1000, 256, 128, 6


class Model(nn.Module):
    """Six layers."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True) for _ in range(6))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x):
        """Scores of each word."""
        x = self.words(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def main():
    """The steps."""
    model = Model().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        words = torch.randint(0, VOCABULARY, (int(sys.argv[1]), LENGTH), device=DEVICE)
        loss = functional.cross_entropy(model(words).view(-1, VOCABULARY), words.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    print("reserved", torch.cuda.max_memory_reserved())


main()
