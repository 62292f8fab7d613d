"""PyTorch that asks for every tensor: training steps with a hook that forgets what a layer gave out, and one that works on a copy and lets it go."""
import planted
import torch
from torch import nn

DEVICE = "cuda"
WIDTH = 1024
ROWS = planted.KEPT_BYTES // WIDTH // 4


def training():
    """A model with its optimizer."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 8)).to(DEVICE)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


MODEL, OPTIMIZER = training()


def holds(_layer, _given, result):
    """A hook that keeps it, by mistake."""
    planted.forget(result.detach().clone())  # line: holds


def step():
    """One, in which the first layer is looked at."""
    handle = MODEL[0].register_forward_hook(holds)
    MODEL(torch.zeros(ROWS, WIDTH, device=DEVICE)).sum().backward()
    handle.remove()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()


def gives_back():
    """Lets it go."""
    torch.zeros(planted.PASSING_BYTES, dtype=torch.uint8, device=DEVICE).clone()


def take(size):
    """Asks for that many bytes."""
    torch.empty(size, dtype=torch.uint8, device=DEVICE)


planted.come_to_an_end(step, gives_back, take)
