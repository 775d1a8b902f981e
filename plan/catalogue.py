"""The tests of the plan: each is a function, registered under its number."""
import dataclasses
import importlib.util
import pathlib
import sys
from typing import Callable

STAGES = {1: "build and install", 2: "examples and API coverage", 3: "scheduling", 4: "PyTorch"}
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent  # of the source tree, or share/xsched of an installed one: the same in both
# What measures, checks and speaks with programs is that of the benchmarks.
sys.path.insert(1, str(ROOT / "bench" / "gpu"))


class Skipped(Exception):
    """A test cannot be done here, and that is no failure: what is missing."""


class Failed(Exception):
    """What was expected did not happen."""


@dataclasses.dataclass(frozen=True)
class Test:
    id: str
    name: str
    function: Callable
    seconds: float  # its limit
    needs_torch: bool
    measures: bool  # wants the device, and the processor, for itself
    quick: bool  # part of a quick run, too

    @property
    def stage(self):
        return int(self.id.split(".")[0])


class Catalogue:
    def __init__(self):
        self.tests = {}

    def test(self, test_id, name, *, seconds=120, torch=True, measures=False, quick=True):
        """A decorator. The function is given a TestBed, and returns when its expectations have been stated there."""
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
    """The catalogue that a Python file holds: its CATALOGUE."""
    specification = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.CATALOGUE
