"""Stage 2: the ways to use XSched, and which parts of the platform's interface it knows, by names and by use."""
import concurrent.futures
import contextlib
import re
import sys

import correct_stage
import elf_exports
from catalogue import CATALOGUE, ROOT, Failed, Skipped
from kernel_stages import LOW
from platforms import PLATFORMS

# ---- the ways to use it ----

@CATALOGUE.test("2.1", "xsched run: a program's arguments, output and exit status are its own", torch=False)
def run_is_transparent(bed):
    program = [sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "two words", "--json", "-p", "3"]
    with bed.server():
        native, ours = bed.output(program), bed.output(program, scheduled=True, options=("-p", 3))
    bed.expect(native == ours == (7, "['two words', '--json', '-p', '3']\n"), f"native {native}, under xsched run {ours}")


@CATALOGUE.test("2.2", "xsched list and hint: a running program's queues are seen, and hints reach them")
def list_and_hint(bed):
    with bed.server():
        (native,), (worker,) = bed.kernel_workers(1, [("-p", 3, "--threshold", 8)])
        native.close()
        worker.send(do="continuous", job=bed.kernel_job(200, 8))
        queues = wait_for_queues(bed, worker)
        queue = max(queues, key=lambda queue: queue["submitted"])
        bed.metrics |= {"queues": len(queues), "level": queue["level"], "device": queue["device"]}
        bed.expect(queue["priority"] == 3, f"priority {queue['priority']}, not 3")
        bed.expect(queue["threshold"] == 8, f"threshold {queue['threshold']}, not 8")
        bed.xsched("hint", "--pid", worker.pid, "--priority", -7)
        bed.expect(all(queue["priority"] == -7 for queue in bed.queues(worker.pid)), "a hint did not reach its queues")
        worker.stop()


def wait_for_queues(bed, worker):
    """The program's queues, once there is work on one."""
    while True:
        queues = bed.queues(worker.pid)
        if any(queue["submitted"] > 100 for queue in queues):
            return queues
        if bed.left() <= 1:
            raise Failed(f"no work is seen on the program's queues: {queues}")


@CATALOGUE.test("2.3", "the C API from Python: a stream is suspended, stands still, and goes on")
def suspend_from_python(bed):
    with bed.server():
        (native,), (worker,) = bed.kernel_workers(1, [("--scheduler", "APP", "--level", bed.gate_level())])
        native.close()
        answer = worker.ask(do="suspend", job=bed.kernel_job(200, 8), tries=20, pause_seconds=0.02)
    bed.metrics["tries"] = len(answer["stopped_ms"])
    bed.expect(answer["ran_while_suspended"] == 0, f"{answer['ran_while_suspended']} steps ended while the stream was suspended")


@CATALOGUE.test("2.4", "the examples: an urgent service beside training, as they are", seconds=300, measures=True, quick=False)
def examples(bed):
    serve, train = (ROOT / "examples" / "pytorch" / name for name in ("serve.py", "train.py"))
    if not serve.is_file():
        raise Skipped("the examples")
    pattern = re.compile(r"p50 ([\d.]+) ms, p99 ([\d.]+) ms")
    for scheduled in (False, True):
        with bed.server() if scheduled else contextlib.nullcontext(), concurrent.futures.ThreadPoolExecutor(2) as pool:
            beside = pool.submit(bed.output, [sys.executable, train], scheduled=scheduled, options=("-p", 0), seconds=140)
            status, text = bed.output([sys.executable, serve], scheduled=scheduled, options=("-p", 10), seconds=140)
            found = pattern.search(text)
            kind = "XSched" if scheduled else "native"
            if status != 0 or not found:
                raise Failed(f"serve.py, {kind}: status {status}")
            bed.metrics[f"serve.py {kind}: p50, ms"], bed.metrics[f"serve.py {kind}: p99, ms"] = map(float, found.groups())
            status, text = beside.result()
            bed.expect(status == 0, f"train.py, {kind}: status {status}")
            bed.note(f"train.py {kind}: {text.strip().splitlines()[-1] if text.strip() else ''}")


# ---- the platform's interface ----

@CATALOGUE.test("2.5", "each function of the runtime here that puts work on a stream has its wrapper")
def functions(bed):
    registry = ROOT / "registry" / bed.platform / "functions.toml"
    kinds = function_kinds(registry)
    runtime = bed.machine.answers["torch"].get("runtime_library")
    if runtime is None:
        raise Skipped("the runtime's library, which was not found in PyTorch's process")
    platform = PLATFORMS[bed.platform]
    exported = interface(platform, elf_exports.exported_functions(runtime))
    wrapped = interface(platform, elf_exports.exported_functions(bed.library(f"shim{bed.platform}")))
    missing = sorted(name for name in exported if kinds.get(name) and name not in wrapped)
    unknown = sorted(set(exported) - set(kinds))
    variants = sorted(set().union(*(exported[name] - wrapped[name] for name in exported if name in wrapped)))
    bed.metrics |= {"library": runtime, "functions": len(exported), "wrapped": sum(name in wrapped for name in exported),
                    "known, pass through": sum(kinds.get(name) is False for name in exported), "unknown": len(unknown),
                    "versions that pass through": len(variants)}
    bed.expect(not missing, f"without a wrapper: {', '.join(missing)}")
    if unknown:
        bed.note(f"not known, and passed through: {', '.join(unknown)}")
    if variants:
        bed.note(f"versions that are passed through: {', '.join(variants)}")


def function_kinds(registry):
    """{function: whether it has a wrapper}."""
    try:
        import tomllib
    except ImportError as error:
        raise Skipped("Python 3.11, whose tomllib reads the registry") from error
    if not registry.is_file():
        raise Skipped("the registry of functions")
    with open(registry, "rb") as file:
        data = tomllib.load(file)
    return {name: properties.get("wrapped", "scope" in properties)
            for kind, properties in data["kinds"].items() for name in data.get(kind, {})}


def interface(platform, names):
    """{function: its symbols} of the platform's interface. Versions, per-thread variants and C++ names belong to one function."""
    functions_ = {}
    for symbol in names:
        name = symbol
        if mangled := re.match(r"_Z(\d+)(\w+)", symbol):
            name = mangled[2][:int(mangled[1])]
        if re.match(platform.FUNCTIONS, name):
            functions_.setdefault(re.sub(r"(_v\d+|_ptsz|_ptds|_spt)+$", "", name), set()).add(symbol)
    return functions_


def compare(bed, group, *checks, competitor=False):
    """Runs a group of bench/gpu's checks, or some of them, natively and under XSched at the same time. The results must be the same."""
    with bed.server(), concurrent.futures.ThreadPoolExecutor(2) as pool, (
            bed.competitor() if competitor else contextlib.nullcontext()):
        seconds = bed.left() - 5
        both = [pool.submit(correct_stage.answers, bed, prefix, scheduled, group, seconds, checks)
                for prefix, scheduled in (([], False), (bed.prefix(*map(str, LOW)), True))]
        native, ours = (each.result() for each in both)
    if not native:
        raise Skipped("an answer natively: see the log")
    results = {check: correct_stage.comparison(native[check], ours.get(check)) for check in native}
    bed.metrics |= results
    done = {check: result for check, result in results.items() if not result.startswith(("skipped", "fails natively"))}
    for check, result in done.items():
        bed.expect(result.startswith("same"), f"{check}: {result}")
    if not done:
        raise Skipped("; ".join(sorted({result.removeprefix("skipped: ") for result in results.values()})))


USES = (("streams", "graphs, streams, events, copies and pools"), ("compile", "torch.compile (Triton)"),
        ("data_loader", "DataLoader's workers"), ("fork", "processes, forked"), ("spawn", "processes, spawned"),
        ("nccl", "all-reduce over two GPUs (NCCL, RCCL)"), ("cpp", "cuBLAS and cuDNN from C++"), ("cupy", "CuPy"),
        ("jax", "JAX"), ("numba", "Numba"))
SLOW = ("nccl", "cpp", "jax")


def register_uses():
    for index, (group, name) in enumerate(USES):
        def use(bed, group=group):
            compare(bed, group, competitor=group == "streams")
        CATALOGUE.test(f"2.{6 + index}", f"{name}: results are those without XSched", seconds=240, quick=group not in SLOW)(use)


register_uses()
