"""Requests that are answered token by token in PyTorch, with caches that grow by being made anew: decode.py REQUESTS TOKENS."""

import sys

import torch

BATCH, HEADS, WIDTH, LAYERS = 4, 8, 64, 6

weights = [torch.zeros(HEADS * WIDTH, 4 * HEADS * WIDTH, dtype=torch.float16, device="cuda") for _ in range(LAYERS)]
for request in range(int(sys.argv[1])):
    asked = 100 + 130 * ((request * 3) % 5)
    cache = [torch.zeros(BATCH, HEADS, asked, WIDTH, dtype=torch.float16, device="cuda") for _ in range(LAYERS)]
    x = torch.zeros(BATCH, 1, HEADS * WIDTH, dtype=torch.float16, device="cuda")
    for token in range(int(sys.argv[2])):
        for i, weight in enumerate(weights):
            q, k, v, _ = (part.reshape(BATCH, HEADS, 1, WIDTH) for part in (x @ weight).chunk(4, -1))
            cache[i] = torch.cat([cache[i], k + v], 2)
            x = (torch.softmax(q @ cache[i].transpose(2, 3), -1) @ cache[i]).reshape(BATCH, 1, HEADS * WIDTH)
print(torch.cuda.max_memory_reserved())
