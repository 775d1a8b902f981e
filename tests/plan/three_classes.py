"""A catalogue with the plan's test of three classes, with kernels in place of a network, which the stand-in for PyTorch has not."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "plan"))
from catalogue import Catalogue  # noqa: E402
from torch_stage import in_three_classes  # noqa: E402

CATALOGUE = Catalogue()


@CATALOGUE.test("4.13", "three classes", measures=True)
def three_classes(bed):
    in_three_classes(bed, {"kernel_us": 500, "kernels": 2, "elements_per_us": 100})
