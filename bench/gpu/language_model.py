"""A language model with 1.1 thousand million random weights, as servers run it: a prompt, then token by token with a cache of keys and
values. After each token the program waits for it, because it sends it to the client."""
import time

import torch
from torch import nn
from torch.nn import functional

WIDTH, LAYERS, HEADS, FEED_FORWARD, VOCABULARY = 2048, 22, 32, 5632, 32000
HEAD = WIDTH // HEADS


class _Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5).to(x.dtype) * self.weight


def _rotated(x, angles):
    """Rotary positions: pairs of numbers are turned by their position's angles."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()), dim=-1)


class _Layer(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.before_attention, self.before_feed_forward = _Norm(), _Norm()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, FEED_FORWARD, bias=False) for _ in range(2))
        self.down = nn.Linear(FEED_FORWARD, WIDTH, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, HEADS, context, HEAD), persistent=False)

    def forward(self, x, places, angles, mask):
        y = self.before_attention(x)
        query, key, value = (part(y).view(1, -1, HEADS, HEAD).transpose(1, 2) for part in (self.query, self.key, self.value))
        self.keys.index_copy_(2, places, _rotated(key, angles))
        self.values.index_copy_(2, places, value)
        y = functional.scaled_dot_product_attention(_rotated(query, angles), self.keys, self.values, attn_mask=mask)
        x = x + self.output(y.transpose(1, 2).reshape(1, -1, WIDTH))
        y = self.before_feed_forward(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class _Model(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(_Layer(context) for _ in range(LAYERS))
        self.norm = _Norm()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        turns = torch.outer(torch.arange(context), 1e4 ** (-torch.arange(HEAD // 2) * 2 / HEAD))
        self.register_buffer("angles", turns, persistent=False)
        self.register_buffer("all_places", torch.arange(context), persistent=False)

    def forward(self, tokens, places):
        """The most likely token after the last one. `tokens` are at these places of the text."""
        x = self.tokens(tokens)
        mask = self.all_places <= places[:, None]
        for layer in self.layers:
            x = layer(x, places, self.angles[places], mask)
        return self.head(self.norm(x[:, -1])).argmax(-1)


class LanguageModelJob:
    """Described by {"prompt_tokens", "steps"[, "graph"]}. A graph for the prompt, and one for each token after it."""

    def __init__(self, prompt_tokens, steps, graph=False):
        torch.manual_seed(1)
        self.prompt_tokens, self.steps = prompt_tokens, steps
        self.stream = torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(self.stream), torch.device("cuda"):
            self.model = _Model(prompt_tokens + steps).to(torch.float16)
            self.prompt = torch.randint(0, VOCABULARY, (1, prompt_tokens))
            self.prompt_places = torch.arange(prompt_tokens)
            self.token = torch.zeros(1, 1, dtype=torch.int64)
            self.place = torch.zeros(1, dtype=torch.int64)
        self._first, self._next = self._read_prompt, self._step
        for _ in range(2):
            self.request()
        if graph:
            self._first, self._next = self._captured(self._read_prompt), self._captured(self._step)
            self.request()

    def _read_prompt(self):
        self.token[0] = self.model(self.prompt, self.prompt_places)
        self.place.fill_(self.prompt_tokens)

    def _step(self):
        self.token[0] = self.model(self.token, self.place)
        self.place += 1

    def _captured(self, function):
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph, stream=self.stream):
            function()
        return graph.replay

    def request(self):
        """Works on one request. Returns the milliseconds until the first token, and from each token to the next."""
        times = [time.monotonic()]
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for launch in (self._first, *(self._next,) * (self.steps - 1)):
                launch()
                self.token.item()
                times.append(time.monotonic())
        first, *others = ((after - before) * 1e3 for before, after in zip(times, times[1:]))
        return first, others
