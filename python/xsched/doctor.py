"""`python -m xsched.doctor`: what works on this machine, and what is missing. As `xsched doctor`, with the same options."""
import sys

from .programs import run

if __name__ == "__main__":
    run("xsched", ["doctor", *sys.argv[1:]])
