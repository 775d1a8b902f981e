"""The ranks of a data-parallel training, with what costs its time: matrix products, and a sum of all gradients over NCCL in each step."""
import os

import torch
import torch.distributed

AHEAD = 2  # steps enqueued ahead


class GangJob:
    """{"size", "layers", "gradients_mb"}. REQUIRES: the environment that torchrun sets. All ranks must run it at the same time."""

    def __init__(self, size, layers, gradients_mb):
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        torch.distributed.init_process_group("nccl", device_id=self.device)
        torch.manual_seed(1)
        self.layers = layers
        self.weight = torch.randn(size, size, dtype=torch.float16, device=self.device) / size ** 0.5
        self.input = torch.randn(size, size, dtype=torch.float16, device=self.device)
        self.gradients = torch.zeros(gradients_mb << 18, device=self.device)
        self.ends = torch.zeros(AHEAD, pin_memory=True)
        self.events = [torch.cuda.Event(blocking=True) for _ in range(AHEAD)]
        self._step(0, ends=False)
        torch.cuda.synchronize()

    def _step(self, turn, ends):
        """Enqueues one. `ends`: what this rank says; the sum over all is known when the step has finished."""
        value = self.input
        for _ in range(self.layers):
            value = self.weight @ value
        self.gradients.zero_()
        if ends:
            self.gradients[0] = 1
        torch.distributed.all_reduce(self.gradients)
        self.ends[turn % AHEAD: turn % AHEAD + 1].copy_(self.gradients[:1], non_blocking=True)
        self.events[turn % AHEAD].record()

    def run_continuously(self, stop, clock):
        """Steps until one rank's stop() is true: all end with the same step. Returns [[time, steps], …]."""
        progress = [[clock(), 0]]
        turn = 0
        while True:
            if turn >= AHEAD:
                self.events[turn % AHEAD].synchronize()
                progress.append([clock(), turn - AHEAD + 1])
                if self.ends[turn % AHEAD] != 0:
                    break
            self._step(turn, ends=stop())
            turn += 1
        torch.cuda.synchronize()
        return progress
