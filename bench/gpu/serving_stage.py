"""Figure 10: servers of language models, beside training and beside each other. The models have random weights.

  llm     PyTorch (language_model.py), eager and with CUDA graphs
  llama   llama.cpp (llama_task.py): an urgent llama-server beside training, and beside another llama-server; one llama-server with
          requests of two priorities, patched as docs/integrations/llama.cpp.md says. `llama-server` is looked for in PATH.
"""
import importlib.util
import pathlib
import shutil
import tempfile

from figures import summary
from kernel_stages import HIGH, LOW
from measure import EAGER_ROUNDS, Together, together, two_in_one
from session import Skipped
from torch_stages import STARTING, limit

FIGURE = "10"
RATE_HZ = 5
REQUEST = {"prompt_tokens": 256, "steps": 16}
LONG_REQUEST = {"prompt_tokens": 1536, "steps": 16}
THREADS = 3  # that send the less urgent requests, so that there is always one
LLAMA_OPTIONS = ("--gpu-layers", 99, "--ctx-size", 8192, "--parallel", 4, "--fit", "off")
ROUNDS = 2
TRAINING = {"model": "bert", "batch": 32, "train": True}
# (what, of which samples, which part of them): the goal as a multiple of what it is alone
EAGER_GOALS = {("first token", "p50"): 1.08, ("first token", "p99"): 1.08, ("a token", "p50"): 1.05, ("a token", "p99"): 1.10}
GRAPH_GOALS = {("first token", "p50"): 1.08, ("first token", "p99"): 1.08}
TRAINING_GOAL = 95 / 122  # of its rate alone


class Requests(Together):
    """What was measured in several rounds, with the times of first and of next tokens."""

    def __init__(self):
        super().__init__()
        self.prompt_ms = []
        self.step_ms = []

    def add(self, task, progresses):
        super().add(task, progresses)
        self.add_alone(task)

    def add_alone(self, task):
        self.prompt_ms += task["prompt_ms"]
        self.step_ms += task["step_ms"]


def report(session, case, results, goals=None):
    """`results`: alone, natively, and under XSched."""
    alone, native, ours = results
    for what, samples in (("first token", "prompt_ms"), ("a token", "step_ms")):
        alone_ms, native_ms, ours_ms = (summary(getattr(measured, samples)) for measured in results)
        for part in ("p50", "p99"):
            goal = (goals or {}).get((what, part))
            session.report.add(FIGURE, case, f"{what}, {part} : alone", ours_ms[part] / alone_ms[part], goal and (None, goal),
                               alone=alone_ms, native=native_ms, xsched=ours_ms)
    # Most of a server's time is the processor's. So the others' rate is not compared with what the server leaves them.
    rate_alone = native.total_before()
    session.report.add(FIGURE, case, "others : alone", ours.total_rate() / rate_alone, goals and (TRAINING_GOAL, None), alone=rate_alone,
                       native=native.total_rate(), xsched=ours.total_rate())


def beside(session, case, serve, low, task, continuous, goals=None, rounds=ROUNDS):
    """`serve` starts the urgent server, `low` the less urgent program, with options for `xsched run` or natively."""
    task = {"rate_hz": RATE_HZ, "seconds": session.seconds, **task}
    with session.step(FIGURE, case, limit(session, 3) * rounds / ROUNDS + 2 * STARTING), session.server():
        native = [serve(), low()]
        scheduled = [serve(*HIGH, scheduled=True), low(*LOW, scheduled=True)]
        session.ready(native, scheduled)
        alone, natively, ours = results = Requests(), Requests(), Requests()
        for _ in range(rounds):
            alone.add_alone(native[0].ask(do="task", **task))
            together(natively, native[0], native[1:], task, continuous)
            together(ours, scheduled[0], scheduled[1:], task, continuous)
        report(session, case, results, goals)


def training_of(session):
    """Starts the training, with options for `xsched run` or natively."""
    return lambda *options, scheduled=False: session.torch(*options, jobs=[TRAINING], scheduled=scheduled)


def llm(session):
    for graph, goals in ((False, EAGER_GOALS), (True, GRAPH_GOALS)):
        job = {**REQUEST, "graph": graph}
        beside(session, f"language model, {'graphs' if graph else 'eager'}, beside training of BERT",
               lambda *options, scheduled=False, job=job: session.torch(*options, jobs=[job], scheduled=scheduled), training_of(session),
               {"job": job}, {"job": TRAINING}, goals, ROUNDS if graph else EAGER_ROUNDS)


def model_in(folder):
    if shutil.which("llama-server") is None:
        raise Skipped("there is no llama-server in PATH")
    if importlib.util.find_spec("gguf") is None:
        raise Skipped("needs the Python package gguf")
    import random_llama
    path = pathlib.Path(folder) / "random.gguf"
    random_llama.write(path)
    return str(path)


def two_priorities(session, case, model):
    """Natively, the server has no priorities, and works on the requests of all slots at the same time."""
    high, low = {**REQUEST, "priority": 1}, {**LONG_REQUEST, "priority": 0}
    task = {"rate_hz": RATE_HZ, "seconds": session.seconds}
    with session.step(FIGURE, case, limit(session, 3) + 2 * STARTING), session.server():
        native = session.llama(model=model, options=LLAMA_OPTIONS)
        scheduled = session.llama("-p", 1, model=model, options=(*LLAMA_OPTIONS, "--priorities", 2), scheduled=True)
        session.ready([native, scheduled])
        alone, natively, ours = results = Requests(), Requests(), Requests()
        for _ in range(ROUNDS):
            alone.add_alone(native.ask(do="task", request=REQUEST, **task))
            for result, worker in ((natively, native), (ours, scheduled)):
                two_in_one(result, worker, {"do": "two_priorities", "high": high, "low": low, "threads": THREADS, **task})
        report(session, case, results)


def llama(session):
    with tempfile.TemporaryDirectory(prefix="xsched-bench-") as folder:
        try:
            model = model_in(folder)
        except Skipped as reason:
            session.report.note(FIGURE, "llama.cpp", f"skipped: {reason}")
            return

        def serve(*options, scheduled=False):
            return session.llama(*options, model=model, options=LLAMA_OPTIONS, scheduled=scheduled)

        task = {"request": REQUEST}
        beside(session, "llama-server beside training of BERT", serve, training_of(session), task, {"job": TRAINING})
        beside(session, "llama-server beside another one", serve, serve, task, {"request": LONG_REQUEST, "threads": THREADS})
        two_priorities(session, "one llama-server, requests of two priorities", model)


STAGES = {"llm": llm, "llama": llama}
