"""A training step in PyTorch: a small model, a batch, a backward pass and an optimizer's step."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to("cuda")
optimizer = torch.optim.Adam(model.parameters())


def step():
    batch = torch.zeros(512, 1024, device="cuda")
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(3):
    step()
torch.cuda.synchronize()
