"""Training steps of a small language model in PyTorch, with sequences of several lengths: gpt.py STEPS BATCH."""

import sys

import torch
from torch import nn

WIDTH, WORDS = 256, 2000


class Block(nn.Module):
    """Attention of one head, and what comes behind it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.parts, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        """One layer."""
        q, k, v = self.parts(self.first(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(q @ k.transpose(1, 2) * 0.1, -1) @ v)
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *[Block() for _ in range(4)], nn.Linear(WIDTH, WORDS)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(int(sys.argv[1])):
    words = torch.zeros(int(sys.argv[2]), 64 + 16 * ((step * 7) % 5), dtype=torch.long, device="cuda")
    model(words).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
print(torch.cuda.max_memory_reserved())
