#!/usr/bin/env python3
"""Checks that no file of src/ includes a header of a layer above its own, and that only some layers look up libraries.

  layers.py [FOLDER]      of the project; by default the one that this script belongs to

MAY_INCLUDE is the architecture, from the lowest layer to the highest. The line of a folder also applies to its subfolders without a
line; {platform} stands for each platform, the same one on both sides. Public headers (xsched/…), headers that are generated for a
platform (build/…/<platform>/…) and a folder's own headers may always be included. Other generated headers belong to the folder that
their path names.
"""
import pathlib
import re
import sys

CORE = ["base", "sched/core", "ipc"]

MAY_INCLUDE = {
    "base": [],
    "sched/core": ["base", "sched/policy_list.h"],
    "sched/policy": ["sched/core"],
    "sched/sim": ["sched/core"],
    "ipc": ["base"],
    "hal/contract.h": [],
    "preempt/gates": ["base", "ipc", "hal/contract.h"],
    "preempt/queue": CORE + ["hal/contract.h", "preempt/gates"],
    "preempt/scheduling": CORE + ["hal/contract.h", "preempt/gates", "preempt/queue"],
    "preempt/api": ["base", "sched/core", "hal/contract.h", "preempt/gates", "preempt/queue", "preempt/scheduling"],
    "hal/common": [],
    "hal/{platform}": ["base", "hal/contract.h", "hal/common", "preempt/api"],
    "shim/common": ["base", "hal/contract.h", "preempt/api"],
    "shim/{platform}": ["base", "preempt/api", "shim/common", "hal/{platform}"],
    "server": CORE,
    "cli": CORE + ["sched/sim", "preempt/gates/launch_config.h", "server/empty_values.h", "server/options.h", "server/policy_names.h", "server/tenants/process_identity.h",
                   "server/tenants/tenant.h", "server/tenants/tenants_file.h", "server/version.h"],
    "platforms/{platform}": ["base", "cli"],
    "slurm": ["base"],
    "kubernetes": ["base", "cli/cdi", "cli/exit_codes.h", "cli/json_text.h", "cli/kernel_device.h", "cli/new_file.h", "cli/platform.h",
                   "cli/server_session.h", "server/empty_values.h", "server/tenants/process_identity.h", "server/version.h"],
}
# What the tests of a folder may include in addition.
TESTS_MAY_INCLUDE = {
    "sched/core": ["sched/testing"],
    "sched/testing": ["sched/core", "base"],
    "sched/policy": ["sched/testing", "sched/sim", "base/testing"],
    "sched/sim": ["sched/testing", "base/testing"],
    "ipc": ["sched/core"],
    "preempt/scheduling": ["preempt/api", "xsched"],
    "hal/{platform}": ["shim/{platform}"],
    "cli": ["server"],
    "kubernetes": ["server/testing"],
}

# How the process' libraries are found: base/libraries.h, loaded_libraries.h, driver_library.h. The tools have their own process.
LOOKS_UP_LIBRARIES = re.compile(r"\b(?:dlopen|dlmopen|dl_iterate_phdr|dladdr1?|dlinfo)\(")
MAY_LOOK_UP_LIBRARIES = ["base", "cli", "platforms"]


def rules_for(path, table):
    """The folder of `path` that has a line, the nearest one, and the line's name."""
    for folder in [path, *path.parents]:
        if str(folder) in table:
            return str(folder), str(folder)
        if folder != path and str(folder.parent / "{platform}") in table:
            return str(folder), str(folder.parent / "{platform}")
    return None, None


def allowed_by(line, table, folder):
    """What files of `folder` may include: the name in the table, and the folder that it stands for."""
    platform = pathlib.PurePath(folder or "").name
    return [(below, below.replace("{platform}", platform)) for below in table.get(line, [])]


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def faults(source):
    unused = {(folder, below) for folder, allowed in MAY_INCLUDE.items() for below in allowed}
    for file in sorted([*source.rglob("*.h"), *source.rglob("*.cc"), *source.rglob("*.c")]):
        path = file.relative_to(source)
        folder, line_name = rules_for(path, MAY_INCLUDE)
        is_test = path.stem.endswith("_test") or "testing" in path.parts
        test_folder, test_line = rules_for(path, TESTS_MAY_INCLUDE) if is_test else (None, None)
        if folder is None and test_folder is None:
            yield f"src/{path}: belongs to no layer that {pathlib.Path(__file__).name} knows"
            continue
        allowed = allowed_by(line_name, MAY_INCLUDE, folder)
        for_tests = allowed_by(test_line, TESTS_MAY_INCLUDE, test_folder)
        may_look_up = is_test or any(is_below(str(path), below) for below in MAY_LOOK_UP_LIBRARIES)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if LOOKS_UP_LIBRARIES.search(line) and not may_look_up:
                yield f"src/{path}:{number}: looks up a library by itself: {line.strip()}"
            match = re.match(r'#include "([^"]+)"', line)
            if not match or not (source / match[1].split("/")[0]).is_dir():  # public, or generated for a platform
                continue
            included = match[1]
            own = is_below(included, folder or test_folder)
            if own or (is_test and any(is_below(included, below) for _, below in for_tests)):
                continue
            used = next((name for name, below in allowed if is_below(included, below)), None)
            if used is None:
                yield f"src/{path}:{number}: {folder} may not include {included}"
            unused.discard((line_name, used))
    for folder, below in sorted(unused):
        yield f"{folder} may include {below}, and does not: take it out of the list"


def main(root):
    found = list(faults(root / "src"))
    print("\n".join(found) or "every include points downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent))
