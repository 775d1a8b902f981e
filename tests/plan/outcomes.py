"""A catalogue with one test for each possible outcome."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "plan"))
from catalogue import Catalogue, Failed, Skipped  # noqa: E402

CATALOGUE = Catalogue()


@CATALOGUE.test("1.1", "passes", torch=False)
def passes(bed):
    bed.metrics["seen"] = bed.machine.devices
    bed.judge("a figure, ms", 2.0, at_most=3, goal=1)


@CATALOGUE.test("1.2", "misses a bound, and goes on", torch=False)
def misses(bed):
    bed.judge("too much", 4.0, at_most=3)
    bed.judge("too little", 0.5, at_least=0.9)
    bed.note("said at the end")


@CATALOGUE.test("1.3", "lacks something", torch=False)
def lacks(bed):
    raise Skipped("a second moon")


@CATALOGUE.test("1.4", "fails", torch=False)
def fails(bed):
    raise Failed("the sky fell")


@CATALOGUE.test("1.5", "raises", torch=False)
def raises(bed):
    raise KeyError("nothing there")


@CATALOGUE.test("1.6", "crashes", torch=False)
def crashes(bed):
    os.abort()


@CATALOGUE.test("1.7", "hangs, with a program in a session of its own", torch=False, seconds=2)
def hangs(bed):
    # The test prints its process id. It would not end by itself.
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    pathlib.Path(os.environ["PLAN_TEST_CHILD"]).write_text(str(child.pid), encoding="ascii")
    time.sleep(600)


@CATALOGUE.test("2.1", "needs PyTorch")
def needs_torch(bed):
    raise AssertionError("it was run without")
