"""All tests of the plan: each stage registers its own."""
import build_stage  # noqa: F401
import coverage_stage  # noqa: F401
import scheduling_stage  # noqa: F401
import torch_stage  # noqa: F401
from catalogue import CATALOGUE

__all__ = ["CATALOGUE"]
