"""Training steps of a small convolutional network in PyTorch, by its own kernels: cuDNN contains a static runtime, which does not run on the simulated driver."""
import mark
import torch
import torch_books as books
from torch import nn

DEVICE = "cuda"


def network():
    """A few layers, with all that such networks have."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.GroupNorm(8, 64), nn.SiLU(), nn.AvgPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.Conv2d(64, 128, 1), nn.ReLU(), nn.Dropout2d(0.1),
        nn.ConvTranspose2d(128, 64, 2, stride=2), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10),
    ).to(DEVICE)  # fmt: skip


def step(number, model, optimizer):
    """One, with pictures of another size every time."""
    side = 32 + 16 * (number % 3)
    pictures = torch.zeros(4 + number % 2, 3, side, side, device=DEVICE)
    wanted = torch.zeros(len(pictures), dtype=torch.long, device=DEVICE)
    scores = model(pictures)
    loss = nn.functional.cross_entropy(scores, wanted)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("step", number, tuple(pictures.shape), tuple(scores.shape), books.counters(), books.segments(), flush=True)
    del pictures, wanted, scores, loss
    mark.live("step %d" % number, books.live(2))


def main():
    """All of it."""
    torch.backends.cudnn.enabled = False
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for number in range(6):
        step(number, model, optimizer)
    model.eval()
    with torch.no_grad():
        print("evaluated", tuple(model(torch.zeros(2, 3, 64, 64, device=DEVICE)).shape))
    mark.live("evaluated", books.live(2))
    del model, optimizer
    books.forget()
    mark.live("end", books.live(2))
    mark.leaks("handles of cuBLAS", 2 * books.HANDLE_BYTES)


main()
