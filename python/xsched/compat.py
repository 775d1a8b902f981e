"""The names of XSched 1.2's Python package (xsched.former), for programs that say where they come from."""
from .former import *  # noqa: F401,F403
from .former import __all__  # noqa: F401
