"""Training steps of an image network in PyTorch, with pictures of several sizes, and now and then a look at larger batches: vision.py STEPS BATCH."""

import sys

import torch
from torch import nn

torch.backends.cudnn.enabled = False  # of which there is no simulated one
layers, width = [], 3
for out in (32, 64, 64, 128):
    layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
    width = out
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batch = int(sys.argv[2])
for step in range(int(sys.argv[1])):
    size = 64 + 32 * ((step * 5) % 4)
    model(torch.zeros(batch, 3, size, size, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 4 == 3:
        with torch.no_grad():
            model(torch.zeros(2 * batch, 3, 160, 160, device="cuda"))
print(torch.cuda.max_memory_reserved())
