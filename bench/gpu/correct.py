#!/usr/bin/env python3
"""What programs do with a GPU, beginning with the simplest. Each check returns its result as a checksum, which must be the same
natively and under XSched.

  correct.py GROUP [CHECK…]     one line of JSON per check: {"check", "sums": […]}, {"check", "skipped"} or {"check", "error"}
  correct.py --list             the groups

The checks of a group share a process.
"""
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from xsched_api import present  # noqa: E402

GROUPS = {}


class Skipped(Exception):
    pass


def check(group):
    def register(function):
        GROUPS.setdefault(group, []).append(function)
        return function
    return register


def need(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Skipped("not installed") from error


def torch_here():
    torch = need("torch")
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(1)
    return torch


def cuda_driver():
    """The runtime's library, for calls that PyTorch does not offer."""
    if torch_here().version.hip is not None:
        raise Skipped("of CUDA's driver")
    import ctypes
    return ctypes.CDLL("libcuda.so.1")


def sums(*tensors):
    """Two numbers for each tensor: its sum, and its sum weighted by position."""
    import torch
    result = []
    for tensor in tensors:
        flat = tensor.detach().double().flatten().cpu()
        result += [flat.sum().item(), (flat * torch.arange(1, flat.numel() + 1, dtype=torch.double)).mean().item()]
    return result


def train(model, batch, target, steps=3):
    torch = torch_here()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        output = model(batch).float()
        loss = torch.nn.functional.cross_entropy(output, target) if target is not None else output.square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return sums(*losses, next(model.parameters()))


# ---- tensors and layers ----

@check("basics")
def tensor_on_device():
    torch = torch_here()
    return sums(torch.arange(1000, dtype=torch.float32).to("cuda") * 2 + 1)


@check("basics")
def randn_on_device():
    torch = torch_here()
    return sums(torch.randn(1 << 20, device="cuda"))


@check("basics")
def matmul():
    torch = torch_here()
    x = torch.randn(1024, 1024, device="cuda")
    return sums(x @ x, (x.half() @ x.half()).float(), torch.linalg.norm(x))


@check("basics")
def conv2d():
    torch = torch_here()
    x = torch.randn(8, 16, 64, 64, device="cuda")
    return sums(torch.nn.functional.conv2d(x, torch.randn(32, 16, 3, 3, device="cuda"), padding=1))


@check("basics")
def small_mlp():
    torch = torch_here()
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    return train(model, torch.randn(64, 784, device="cuda"), torch.randint(0, 10, (64,), device="cuda"))


@check("basics")
def small_cnn():
    torch = torch_here()
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(),
                          nn.Linear(32 * 11 * 11, 10)).cuda()
    return train(model, torch.randn(64, 1, 28, 28, device="cuda"), torch.randint(0, 10, (64,), device="cuda"))


@check("basics")
def small_transformer():
    torch = torch_here()
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    return train(torch.nn.TransformerEncoder(layer, 2).cuda(), torch.randn(16, 32, 128, device="cuda"), None)


@check("basics")
def small_allocations_and_frees():
    torch = torch_here()
    total = torch.zeros(1, device="cuda")
    for size in range(1, 200):
        total += torch.ones(size * 1000, device="cuda").sum()
        if size % 50 == 0:
            torch.cuda.empty_cache()  # cudaFree, which waits for the device
    return sums(total)


# ---- networks ----

def network(name, batch=8, training=True):
    torch = torch_here()
    import models
    model = models.MODELS[name]().cuda()
    x = models.inputs(name, batch, torch.float32, "cuda")
    with torch.inference_mode():
        forward = sums(model.eval()(x))
    target = None if name == "bert" else torch.randint(0, 1000, (batch,), device="cuda")
    return forward + (train(model.train(), x, target) if training else [])


@check("networks")
def resnet18():
    return network("resnet18")


@check("networks")
def resnet50():
    return network("resnet50")


@check("networks")
def mobilenet():
    return network("mobilenet")


@check("networks")
def bert_base():
    return network("bert")


# ---- graphs, streams, copies ----

@check("streams")
def cuda_graph_of_inference():
    torch = torch_here()
    import models
    model = models.resnet(18).cuda().eval()
    x = torch.randn(4, 3, 224, 224, device="cuda")
    with torch.inference_mode():
        eager = model(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        results = []
        for _ in range(3):
            graph.replay()
            results.append(y.clone())
        torch.cuda.synchronize()
    return sums(eager, *results)


@check("streams")
def cuda_graph_of_a_training_step():
    torch = torch_here()
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(32, 256, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    losses = []
    for _ in range(5):
        graph.replay()
        losses.append(loss.clone())
    return sums(*losses, model[0].weight)


@check("streams")
def capture_while_another_thread_works():
    torch = torch_here()
    import threading
    x = torch.randn(512, 512, device="cuda")
    stop, ready = threading.Event(), threading.Event()
    rounds = []

    def work():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            y = torch.ones(512, 512, device="cuda")
            while not stop.is_set():
                y = torch.tanh(y @ x)
                stream.synchronize()
                rounds.append(1)
                ready.set()

    torch.cuda.synchronize()
    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(30)
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            y = torch.relu(x) * 2
    finally:
        stop.set()
        thread.join()
    graph.replay()
    torch.cuda.synchronize()
    return sums(y) + [float(len(rounds) > 0)]


@check("streams")
def streams_with_priorities():
    torch = torch_here()
    x = torch.randn(1024, 1024, device="cuda") / 32
    torch.cuda.synchronize()
    results = []
    for priority in (0, -1, -5):
        stream = torch.cuda.Stream(priority=priority)
        with torch.cuda.stream(stream):
            y = x
            for _ in range(20):
                y = torch.tanh(y @ x)
            results.append(y)
    torch.cuda.synchronize()
    return sums(*results)


@check("streams")
def events_between_streams():
    torch = torch_here()
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for _ in range(50):
        with torch.cuda.stream(first):
            x.add_(1)
            event = first.record_event()
        with torch.cuda.stream(second):
            second.wait_event(event)
            x.mul_(1.01)
            event = second.record_event()
        first.wait_event(event)
    torch.cuda.synchronize()
    return sums(x)


@check("streams")
def default_stream_and_blocking_streams():
    """The legacy default stream waits for blocking streams, and they wait for it. The driver makes them, because PyTorch's streams
    are not blocking."""
    torch = torch_here()
    import ctypes
    driver = cuda_driver()
    x = torch.ones(1 << 22, device="cuda")
    torch.cuda.synchronize()
    handle = ctypes.c_void_p()
    if driver.cuStreamCreate(ctypes.byref(handle), 0) != 0:
        raise RuntimeError("cuStreamCreate")
    blocking = torch.cuda.ExternalStream(handle.value)
    for _ in range(50):
        with torch.cuda.stream(blocking):
            x.add_(1)
        x.mul_(1.01)
    torch.cuda.synchronize()
    result = sums(x)
    driver.cuStreamDestroy_v2(handle)
    return result


@check("streams")
def pinned_async_copies():
    torch = torch_here()
    source = torch.randn(1 << 22).pin_memory()
    target = torch.empty(1 << 22).pin_memory()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(10):
            there = source.to("cuda", non_blocking=True)
            target.copy_(there * 2, non_blocking=True)
    stream.synchronize()
    return sums(target)


@check("streams")
def memory_pool_of_the_driver():
    torch = torch_here()
    import ctypes
    driver = cuda_driver()
    torch.zeros(1, device="cuda")
    stream = torch.cuda.Stream()
    value = ctypes.c_uint32(0)
    for size in range(1, 50):
        pointer = ctypes.c_uint64()
        bytes_ = ctypes.c_size_t(size << 16)
        handle = ctypes.c_void_p(stream.cuda_stream)
        for name, *arguments in (("cuMemAllocAsync", ctypes.byref(pointer), bytes_, handle),
                                 ("cuMemsetD32Async", None, ctypes.c_uint32(size), ctypes.c_size_t(size << 14), handle),
                                 ("cuMemcpyDtoHAsync_v2", ctypes.byref(value), None, ctypes.c_size_t(4), handle),
                                 ("cuMemFreeAsync", None, handle)):
            arguments = [pointer if argument is None else argument for argument in arguments]
            if getattr(driver, name)(*arguments) != 0:
                raise RuntimeError(name)
        stream.synchronize()
        if value.value != size:
            raise RuntimeError(f"{value.value} instead of {size}")
    return [float(value.value)]


@check("compile")
def torch_compile():
    torch = torch_here()
    import shutil
    if shutil.which(os.environ.get("CC", "cc")) is None and shutil.which("gcc") is None:
        raise Skipped("no C compiler, which Triton needs")
    x = torch.randn(256, 256, device="cuda")
    compiled = torch.compile(lambda a: torch.softmax(torch.relu(a @ a) + 1, dim=-1).sum(dim=0))
    return sums(compiled(x), compiled(x * 2))


# ---- processes ----

class Numbers:
    """A data set."""

    def __len__(self):
        return 256

    def __getitem__(self, index):
        import torch
        return torch.full((64,), float(index))


@check("data_loader")
def data_loader_workers():
    torch = torch_here()
    total = torch.zeros(64, device="cuda")  # the workers are forked from a process that uses the GPU
    for batch in torch.utils.data.DataLoader(Numbers(), batch_size=16, num_workers=4, pin_memory=True):
        total += batch.cuda(non_blocking=True).sum(0)
    return sums(total)


def _child(index, results):
    import torch
    torch.manual_seed(index)
    x = torch.randn(512, 512, device="cuda")
    results.put((index, sums(x @ x)))


def _children(kind):
    need("torch")
    import multiprocessing
    context = multiprocessing.get_context(kind)
    results = context.Queue()
    children = [context.Process(target=_child, args=(index, results)) for index in range(3)]
    for child in children:
        child.start()
    answers = dict(results.get(timeout=60) for _ in children)
    for child in children:
        child.join(20)
        if child.exitcode != 0:
            raise RuntimeError(f"a child ended with {child.exitcode}")
    return [number for index in sorted(answers) for number in answers[index]]


@check("fork")
def multiprocessing_fork():
    return _children("fork")


@check("spawn")
def multiprocessing_spawn():
    torch = torch_here()
    return sums(torch.ones(1, device="cuda")) + _children("spawn")


def _rank(rank, count, port, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    import torch
    import torch.distributed as distributed
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", rank=rank, world_size=count)
    torch.manual_seed(rank)
    x = torch.randn(1 << 20, device="cuda")
    for _ in range(10):
        distributed.all_reduce(x)
        x /= count
    results.put((rank, sums(x)))
    torch.cuda.synchronize()
    distributed.destroy_process_group()


@check("nccl")
def nccl_all_reduce():
    torch = need("torch")
    count = torch.cuda.device_count()
    if count < 2:
        raise Skipped("one GPU")
    import multiprocessing
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = [context.Process(target=_rank, args=(rank, 2, port, results)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    answers = dict(results.get(timeout=60) for _ in ranks)
    for rank in ranks:
        rank.join(20)
    return answers[0] + answers[1]


# ---- other languages and frameworks ----

@check("cpp")
def cublas_and_cudnn_from_cpp():
    program = pathlib.Path(os.environ.get("XSCHED_BENCH_BIN", ""), "library_check")
    if not program.is_file():
        raise Skipped("library_check is not built")
    folders = [os.environ.get("LD_LIBRARY_PATH", "")]
    for package in getattr(need("nvidia"), "__path__"):  # the libraries in NVIDIA's wheels
        folders += sorted({str(library.parent) for library in pathlib.Path(package).glob("*/lib/lib*.so*")})
    done = subprocess.run([str(program)], env=dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders))),
                          capture_output=True, text=True, timeout=100, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["sums"]


@check("cupy")
def cupy_arrays():
    cupy = need("cupy")
    x = cupy.random.RandomState(1).standard_normal((512, 512))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y = cupy.tanh(x @ x / 32)
    stream.synchronize()
    return [float(x.sum()), float(y.sum())]


@check("cupy")
def cupy_raw_kernel():
    cupy = need("cupy")
    kernel = cupy.RawKernel('extern "C" __global__ void f(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 3; }', "f")
    x = cupy.arange(1024, dtype=cupy.float32)
    kernel((4,), (256,), (x,))
    return [float(x.sum())]


@check("jax")
def jax_arrays():
    jax = need("jax")
    if jax.default_backend() != "gpu":
        raise Skipped("no GPU backend")
    x = jax.random.normal(jax.random.PRNGKey(1), (512, 512))

    @jax.jit
    def f(a):
        return jax.numpy.tanh(a @ a / 32)

    return [float(f(x).sum()), float(jax.grad(lambda a: f(a).sum())(x).sum())]


@check("numba")
def numba_kernel():
    numpy = need("numpy")
    cuda = need("numba.cuda")

    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    x = cuda.to_device(numpy.arange(10000, dtype=numpy.float32))
    double[40, 256](x)
    return [float(x.copy_to_host().sum())]


def run(function):
    begin = time.monotonic()
    try:
        result = {"sums": function()}
    except Skipped as reason:
        result = {"skipped": str(reason)}
    except Exception as error:  # whatever a framework raises is the check's result
        result = {"error": f"{type(error).__name__}: {error}"[:500]}
    return {"check": function.__name__, **result, "under_xsched": present(), "seconds": round(time.monotonic() - begin, 2)}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--list":
        print("\n".join(GROUPS))
    else:
        for function in GROUPS[sys.argv[1]]:
            if len(sys.argv) == 2 or function.__name__ in sys.argv[2:]:
                print(json.dumps(run(function)), flush=True)
