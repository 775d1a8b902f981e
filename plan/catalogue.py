"""The tests of the plan. Each is a function that is registered with its number."""
import dataclasses
import importlib.util
import pathlib
import sys
from typing import Callable

STAGES = {1: "build and install", 2: "examples and API coverage", 3: "scheduling", 4: "PyTorch"}
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent  # of the source tree, or share/xsched of an installed one: the same in both
# The plan uses the benchmarks' code to measure, to check and to communicate with programs.
sys.path.insert(1, str(ROOT / "bench" / "gpu"))


class Skipped(Exception):
    """A test is not possible on this machine. This is not a failure. The text says what is missing."""


class Failed(Exception):
    """An expectation was not met."""


@dataclasses.dataclass(frozen=True)
class Test:
    id: str
    name: str
    function: Callable
    seconds: float  # its limit
    needs_torch: bool
    measures: bool  # needs the device and the processor for itself
    quick: bool  # also part of a quick run

    @property
    def stage(self):
        return int(self.id.split(".")[0])


class Catalogue:
    def __init__(self):
        self.tests = {}

    def test(self, test_id, name, *, seconds=120, torch=True, measures=False, quick=True):
        """A decorator. The function gets a TestBed, and states its expectations there."""
        def register(function):
            if test_id in self.tests:
                raise ValueError(f"two tests {test_id}")
            self.tests[test_id] = Test(test_id, name, function, seconds, torch, measures, quick)
            return function
        return register

    def in_order(self):
        return sorted(self.tests.values(), key=lambda test: [int(part) for part in test.id.split(".")])


# Where the stages register their tests.
CATALOGUE = Catalogue()


def load(path):
    """The CATALOGUE of a Python file."""
    specification = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.CATALOGUE
