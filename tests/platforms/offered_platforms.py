#!/usr/bin/env python3
"""The completions offer those platforms for the plan that the plan has.

  offered_platforms.py COMPLETION
"""
import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
of_the_plan = {file.stem for file in (PROJECT / "plan/platforms").glob("[!_]*.py")}
# What stands behind the case of another command that has this option.
offered = re.search(r'--platform\)\n.*?\n +fi\n[^\n]*compgen -W "([^"]*)"', pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), re.DOTALL)
if not offered or not of_the_plan or set(offered[1].split()) != of_the_plan:
    sys.exit(f"the completions offer {offered and offered[1]}, the plan has {' '.join(sorted(of_the_plan))}")
