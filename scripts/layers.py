#!/usr/bin/env python3
"""Checks that no file of src/ includes a header of a layer above its own.

  layers.py [FOLDER]      of the project; by default the one that this script belongs to

MAY_INCLUDE is the architecture, from the lowest layer to the highest. A folder stands for all below it that have no line of
their own. Public headers (xsched/…), generated headers (build/…/<platform>/…) and a folder's own headers may always be included.
"""
import pathlib
import re
import sys

CORE = ["base", "sched/core", "ipc"]

MAY_INCLUDE = {
    "base": [],
    "sched/core": ["base"],
    "sched/policy": ["sched/core"],
    "sched/sim": ["sched/core", "sched/testing"],
    "ipc": ["base"],
    "hal/contract.h": [],
    "preempt/gates": ["base", "ipc", "hal/contract.h"],
    "preempt/queue": CORE + ["hal/contract.h", "preempt/gates"],
    "preempt/scheduling": CORE + ["hal/contract.h", "preempt/gates", "preempt/queue"],
    "preempt/api": ["base", "sched/core", "hal/contract.h", "preempt/gates", "preempt/queue", "preempt/scheduling"],
    "hal/soft": ["base", "hal/contract.h", "preempt/api"],
    "hal/opencl": ["base", "hal/contract.h", "preempt/api"],
    "hal/common": [],
    "hal/cuda": ["base", "hal/contract.h", "hal/common", "preempt/api", "preempt/queue"],
    "hal/hip": ["base", "hal/contract.h", "hal/common", "preempt/api", "preempt/queue"],
    "shim/common": ["base", "hal/contract.h", "preempt/api", "preempt/queue"],
    "shim/cuda": ["base", "preempt/api", "shim/common", "hal/cuda"],
    "shim/hip": ["base", "preempt/api", "shim/common", "hal/hip"],
    "shim/opencl": ["base", "preempt/api", "shim/common", "hal/opencl"],
    "server": CORE,
    "cli": CORE + ["server/options.h", "server/policy_names.h"],
}
# What tests of a folder may use beside it.
TESTS_MAY_INCLUDE = {
    "sched/core": ["sched/testing"],
    "sched/testing": ["sched/core", "base"],
    "sched/policy": ["sched/testing"],
    "sched/sim": ["sched/testing"],
    "ipc": ["sched/core"],
    "preempt/scheduling": ["preempt/api", "xsched"],
    "hal/hip": ["shim/hip"],
    "cli": ["server"],
}


def rules_for(path, table):
    """The line of `path` or of the nearest folder above it."""
    for folder in [path, *path.parents]:
        if str(folder) in table:
            return str(folder), table[str(folder)]
    return None, []


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def faults(source):
    unused = {(folder, below) for folder, allowed in MAY_INCLUDE.items() for below in allowed}
    for file in sorted([*source.rglob("*.h"), *source.rglob("*.cc"), *source.rglob("*.c")]):
        path = file.relative_to(source)
        folder, allowed = rules_for(path, MAY_INCLUDE)
        is_test = path.stem.endswith("_test") or "testing" in path.parts
        test_folder, for_tests = rules_for(path, TESTS_MAY_INCLUDE) if is_test else (None, [])
        if folder is None and test_folder is None:
            yield f"src/{path}: belongs to no layer that {pathlib.Path(__file__).name} knows"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = re.match(r'#include "([^"]+)"', line)
            if not match or not (source / match[1]).exists():  # public or generated
                continue
            included = match[1]
            own = is_below(included, folder or test_folder)
            if own or (is_test and any(is_below(included, below) for below in for_tests)):
                continue
            used = next((below for below in allowed if is_below(included, below)), None)
            if used is None:
                yield f"src/{path}:{number}: {folder} may not include {included}"
            unused.discard((folder, used))
    for folder, below in sorted(unused):
        yield f"{folder} may include {below}, and does not: take it out of the list"


def main(root):
    found = list(faults(root / "src"))
    print("\n".join(found) or "every include points downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent))
