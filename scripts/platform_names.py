#!/usr/bin/env python3
"""Checks that no file names a platform, but the platform's own: the folders and files that it has in hal/, shim/ and platforms/.

  platform_names.py [FOLDER]      of the project; by default the one that this script belongs to

A platform is a folder of src/platforms. Comments count, tests do not. So a platform is added, changed or taken out in its own
files, and nobody who reads the general code has to know one.
"""
import pathlib
import re
import sys

FOLDERS = ("src", "cmake", "codegen", "packaging", "plan", "python")
# What the folder's name does not tell: who makes it, and how its interface names things.
OTHER_NAMES = {
    "cuda": r"(?i:nvidia)|\bCU[a-z]|\bcu[A-Z]",
    "hip": r"\bAMD\b|amd(?:gpu|hip)|(?i:rocm(?!ask))|\bkfd\b|rocprofiler",
    "opencl": r"\bcl_[a-z]|\bcl[A-Z][a-z]",
    "soft": r"software device",
}
# The names that PyTorch and CuPy have for the GPUs of all platforms, and that other libraries have taken over.
OF_ALL_PLATFORMS = re.compile(r"\b(?:torch|cupy|framework)\.cuda\b|\b(?:__)?cuda_stream(?:__)?\b")
EXCEPTIONS = {
    "src/cli/demo/demo.cc": "the demo is an OpenCL program beside an OpenCL program",
    "src/cli/demo/hashcat.cc": "and this is the other one's command line",
    "src/cli/CMakeLists.txt": "the demo's test needs OpenCL, and the tool's tests a shim",
    "src/kubernetes/pods.h": "HAMi's variable has this name",
    "src/preempt/CMakeLists.txt": "one of its tests needs a device",
    "src/server/device_access.cc": "NVIDIA's driver does not say in /sys of which GPU a file is",
    "src/server/device_access.h": "and where it says so",
    "plan/coverage_stage.py": "names the libraries that programs use",
    "python/xsched/cuda.py": "XSched 1.2 has a module of this name",
    "python/xsched/cuda_contexts.py": "a thread's default stream is that of the driver's current context",
    "python/xsched/former.py": "XSched 1.2's enumeration of platforms",
    "python/xsched/hip.py": "XSched 1.2 has a module of this name",
    "python/xsched/queue.py": "says which libraries' objects are streams; PyOpenCL is one",
    "python/xsched/streams.py": "the same",
}
SUFFIXES = {".h", ".cc", ".c", ".in", ".map", ".txt", ".cmake", ".py", ".toml"}


def pattern_of(name):
    """libhip, shimhip, hipMalloc, kHipShim and XSCHED_HIP are HIP; ownership and a softer word are not."""
    own = rf"(?<![A-Za-z])(?:lib)?(?:hal|shim)?{name}(?!ware|er)|{name.capitalize()}(?!ware|er)|(?<![A-Z]){name.upper()}"
    if len(name) > 4:
        own = rf"(?i:{name})"
    return re.compile("|".join([own, *([OTHER_NAMES[name]] if name in OTHER_NAMES else [])]))


def platform_of(path):
    """Whose file it is; None: general code."""
    parts = path.with_suffix("").parts
    return next((own for folder, own in zip(parts, parts[1:]) if folder in ("hal", "shim", "platforms")), None)


def is_test(path):
    return path.stem.endswith("_test") or not {"testing", "tests"}.isdisjoint(path.parts)


def files(root):
    for folder in FOLDERS:
        yield from sorted(file for file in (root / folder).rglob("*") if file.suffix in SUFFIXES)


def faults(root):
    platforms = {folder.name: pattern_of(folder.name) for folder in (root / "src/platforms").iterdir() if folder.is_dir()}
    unused = dict(EXCEPTIONS) if (root / "src/cli").exists() else {}
    for file in files(root):
        path = file.relative_to(root)
        if is_test(path):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            text = OF_ALL_PLATFORMS.sub("", line)
            named = [name for name, pattern in platforms.items() if name != platform_of(path) and pattern.search(text)]
            if named and str(path) not in EXCEPTIONS:
                yield f"{path}:{number}: names {', '.join(named)}: {line.strip()}"
            elif named:
                unused.pop(str(path), None)
    for path in unused:
        yield f"{path} names no platform: take it out of the exceptions"


def main(root):
    found = list(faults(root))
    print("\n".join(found) or "every platform is named by its own files alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent))
