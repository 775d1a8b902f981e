"""The names of XSched 1.2's Python package (xsched.former), for programs that say where they come from."""
from . import former
from .constants import PRIORITY_DEFAULT, PRIORITY_MAX, PRIORITY_MIN, PRIORITY_NO_EXECUTE
from .former import *  # noqa: F401,F403

__all__ = ["PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN", "PRIORITY_NO_EXECUTE", *former.__all__]
