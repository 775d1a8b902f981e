#!/usr/bin/env python3
"""The program of the benchmarks with llama.cpp: it starts a llama-server, and sends it requests. Commands and answers are like gpu_task's.
A request is {"prompt_tokens", "steps"}, and may have a "priority" (docs/integrations/llama.cpp.md). "threads" send them at a time.

  {"do": "prepare", "model", "options"}                              → {"under_xsched"}; the server is ready
  {"do": "task", "request", "rate_hz", "seconds"}                    → {"begin", "end", "latency_ms", "prompt_ms", "step_ms": […]}
  {"do": "continuous", "request", "threads"}, until the next line    → {"progress": [[time, tokens], …]}
  {"do": "two_priorities", "high", "low", "threads", "rate_hz", "seconds", "lead_seconds"}  → {"task": …, "continuous": …}
"""
import atexit
import concurrent.futures
import contextlib
import json
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from worker import Commands  # noqa: E402

WORDS = range(300, 32000)  # of random_llama.py's vocabulary
STARTING = 90  # seconds that llama-server may take to load a model

commands = Commands()


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Server:
    """A llama-server. It ends with this program."""

    def __init__(self, model, options):
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(["llama-server", "--model", model, "--host", "127.0.0.1", "--port", str(port), *map(str, options)],
                                         stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr)
        atexit.register(self._process.kill)
        self._wait_ready()
        self.complete(prompt_tokens=512, steps=2)  # the first request is slow, because libraries load their kernels

    def _wait_ready(self):
        end = time.monotonic() + STARTING
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                with urllib.request.urlopen(f"{self._address}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            time.sleep(0.1)
        raise RuntimeError(f"llama-server does not start (status {self._process.poll()})")

    def under_xsched(self):
        return "libshimcuda" in pathlib.Path(f"/proc/{self._process.pid}/maps").read_text(encoding="utf-8")

    def complete(self, prompt_tokens, steps, **more):
        """Sends one request, and returns (milliseconds until its answer, the server's own timings)."""
        prompt = [random.choice(WORDS) for _ in range(prompt_tokens)]
        body = {"prompt": prompt, "n_predict": steps, "ignore_eos": True, "cache_prompt": False, "temperature": 0, **more}
        request = urllib.request.Request(f"{self._address}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
        begin = time.monotonic()
        with urllib.request.urlopen(request, timeout=60) as answer:
            timings = json.load(answer)["timings"]
        return (time.monotonic() - begin) * 1e3, timings


server = None


def run_task(request, rate_hz, seconds):
    """Requests at a fixed rate. One that is late delays no other."""
    first = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        def one(arrival):
            time.sleep(max(0, arrival - time.monotonic()))
            return server.complete(**request)

        answers = list(pool.map(one, [first + index / rate_hz for index in range(1, int(seconds * rate_hz))]))
    return {"begin": first, "end": time.monotonic(), "latency_ms": [latency for latency, _ in answers],
            "prompt_ms": [timings["prompt_ms"] for _, timings in answers],
            "step_ms": [timings["predicted_per_token_ms"] for _, timings in answers]}


class Continuously:
    """Threads that send one request after the other, during the block."""

    def __init__(self, request, threads):
        self._request = request
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        self._threads = threads
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self.progress = [[time.monotonic(), 0]]

    def _send(self):
        while not self._ends.is_set():
            _, timings = server.complete(**self._request)
            with self._lock:
                self.progress.append([time.monotonic(), self.progress[-1][1] + timings["prompt_n"] + timings["predicted_n"]])

    def __enter__(self):
        self._sent = [self._pool.submit(self._send) for _ in range(self._threads)]
        return self

    def __exit__(self, *_):
        self._ends.set()
        for sent in self._sent:
            sent.result()
        self._pool.shutdown()


def run_continuously(request, threads):
    with Continuously(request, threads) as continuous:
        while not commands.interrupted():
            time.sleep(0.01)
    return {"progress": continuous.progress}


def run_two_priorities(high, low, threads, rate_hz, seconds, lead_seconds):
    with Continuously(low, threads) as continuous:
        time.sleep(lead_seconds)
        task = run_task(high, rate_hz, seconds)
    return {"task": task, "continuous": {"progress": continuous.progress}}


def run(command):
    global server
    what = command.pop("do")
    if what == "stop":
        return {}
    if what == "prepare":
        server = Server(**command)
        return {"under_xsched": server.under_xsched()}
    return {"task": run_task, "continuous": run_continuously, "two_priorities": run_two_priorities}[what](**command)


commands.serve(run)
