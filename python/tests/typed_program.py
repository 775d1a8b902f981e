"""A program that uses the package as README.md shows it. `mypy --strict` checks it, and nobody runs it."""
import xsched

with xsched.priority(10), xsched.jax.hints(priority=1), xsched.torch.stream(priority=10):
    xsched.cupy.stream(priority=3)


@xsched.hints(priority=-5, weight=20)
def evaluate() -> int:
    return len(xsched.queues())


with xsched.XSchedQueue(None, priority=evaluate()) as queue, queue.held():
    queue.submit(lambda: None).wait()
xsched.jax.hint(priority=10)
print(xsched.compat.XSched)
