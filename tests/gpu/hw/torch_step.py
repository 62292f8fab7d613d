"""Training steps of a small transformer in PyTorch; prints one JSON object. Run natively and under memshim, by turns."""

import json
import statistics
import sys
import time

import torch

LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 8, 1024, 16, 512, 8, 32000
WARM, STEPS, MOST_SECONDS = 5, 40, 25.0


class Model(torch.nn.Module):
    """An encoder with a head over the vocabulary: every size of block that training asks for."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.1, batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, LAYERS)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.body(self.words(tokens)))


def main():
    torch.manual_seed(1)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    taken = []
    begun = time.monotonic()
    for step in range(WARM + STEPS):
        # Lengths differ from step to step, as those of real batches do.
        length = LENGTH - 64 * (step % 4)
        tokens = torch.randint(0, WORDS, (BATCH, length), device="cuda")
        torch.cuda.synchronize()
        before = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if step >= WARM:
            taken.append((time.perf_counter() - before) * 1e3)
        if time.monotonic() - begun > MOST_SECONDS and len(taken) >= 5:
            break
    taken.sort()
    print(json.dumps({"median_ms": round(statistics.median(taken), 3), "p90_ms": round(taken[len(taken) * 9 // 10], 3),
                      "steps": len(taken), "loss": round(float(loss.detach()), 3),
                      "torch_peak_reserved_bytes": torch.cuda.max_memory_reserved()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
