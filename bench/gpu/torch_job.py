"""A network that runs repeatedly: inference or training steps, eager or as a CUDA graph."""
import torch

import models
import xsched_api

DTYPES = {"fp16": torch.float16, "fp32": torch.float32}


class Job:
    """A job is described by {"model", "batch", "dtype"[, "train"][, "graph"]}. Training with fp16 uses autocast. `hint`: its stream's
    priority for XSched, if XSched is in the process. `stream_priority`: its priority for the driver."""

    def __init__(self, model, batch, dtype="fp16", train=False, graph=False, device="cuda", hint=0, stream_priority=0):
        torch.manual_seed(1)
        kind = DTYPES[dtype]
        self.batch = batch
        self.train = train
        self.autocast = train and kind == torch.float16
        self.stream = torch.cuda.Stream(priority=stream_priority)
        with torch.cuda.stream(self.stream):
            stored = torch.float32 if self.autocast else kind
            self.module = models.MODELS[model]().to(device=device, dtype=stored).train(train)
            self.input = models.inputs(model, batch, stored, device)
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-3) if train else None
            for _ in range(4):
                self.step()
            self.stream.synchronize()
            # Before the capture, because a graph's kernels keep the stream's priority.
            if hint and xsched_api.present():
                xsched_api.set_priority(self.stream, hint)
            self.graph = None
            if graph:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph, stream=self.stream):
                    self.step()
                self.run()
                self.stream.synchronize()

    def step(self):
        if not self.train:
            with torch.inference_mode():
                return self.module(self.input)
        # A graph's gradients must be allocated in it. So they are dropped, and not set to zero.
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.float16, enabled=self.autocast, cache_enabled=False):
            loss = self.module(self.input).float().square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self):
        """Enqueues one step on this job's stream. REQUIRES: this stream is current."""
        if self.graph is not None:
            self.graph.replay()
        else:
            self.step()
