#!/usr/bin/env python3
"""An inference service with 20 requests a second. Prints their latency. It does not use XSched's API."""
import time

import torch

REQUESTS, PERIOD = 400, 0.05

torch.manual_seed(1)
model = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), num_layers=12, enable_nested_tensor=False).cuda().half().eval()
request = torch.randn(1, 128, 512, device="cuda", dtype=torch.float16)
latencies = []
with torch.inference_mode():
    for i in range(REQUESTS + 20):
        begin = time.perf_counter()
        model(request)
        torch.cuda.synchronize()
        if i >= 20:
            latencies.append((time.perf_counter() - begin) * 1e3)
        time.sleep(max(0.0, begin + PERIOD - time.perf_counter()))
latencies.sort()
print(f"{REQUESTS} requests: p50 {latencies[REQUESTS // 2]:.2f} ms, p99 {latencies[REQUESTS * 99 // 100]:.2f} ms")
