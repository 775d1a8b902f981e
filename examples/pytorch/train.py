#!/usr/bin/env python3
"""A training job that uses all of the GPU that it can get, for half a minute. It does not use XSched's API."""
import time

import torch

SECONDS, BATCH, WIDTH = 30, 8192, 4096

torch.manual_seed(1)
model = torch.nn.Sequential(*(layer for _ in range(8) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
samples = torch.randn(BATCH, WIDTH, device="cuda")
steps = 0
begin = time.perf_counter()
while (elapsed := time.perf_counter() - begin) < SECONDS:
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(samples).float().square().mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
    steps += 1
print(f"{steps / elapsed:.2f} steps a second")
