"""A program to test with: its file's header, as of PEP 723, says what it needs.

    # /// script
    # requires-python = ">=3.12"
    # dependencies = ["openmm==8.6.1"]    all of them, pinned: what they depend on themselves is not fetched
    # [tool.xsched]                       all of these may be left out
    # runtime = "7.0.0"                   AMD's build that it uses (7.2.4); "system": the one that is installed, without a table
    # gpus = ["gfx90a", "gfx942"]         the agent's architecture: the program runs once with each (gfx90a)
    # folders = ["build/hip/triton"]      further places of Python modules, relative to this source tree
    # programs = ["llama-completion"]     what else must be installed: programs,
    # libraries = ["hipblaslt"]           and libraries
    # kernel_us = 500                     how long the agent's kernels take, so that the program can be held (200)
    # large = true                        runs by --large only
    # [tool.xsched.compiled]              libraries of ours in the place of others: their sources in libraries/
    # "librocm_smi64.so.7" = "rocm_smi.c"
    # [tool.xsched.absent]                libraries that are linked and not used, and how their functions begin (absent.py)
    # "librccl.so.1" = "nccl"
    # [tool.xsched.env]
    # HIP_PATH = "{runtime}"              {runtime}: the runtime's library; {folder}: where it is
    # ///
"""
import ctypes.util
import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import absent

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent.parent
ABSENT = "absent-libraries"


@dataclasses.dataclass(frozen=True)
class Program:
    path: pathlib.Path
    python: str
    dependencies: list[str]
    runtime: str = "7.2.4"
    gpus: list[str] = dataclasses.field(default_factory=lambda: ["gfx90a"])
    folders: list[str] = dataclasses.field(default_factory=list)
    programs: list[str] = dataclasses.field(default_factory=list)
    libraries: list[str] = dataclasses.field(default_factory=list)
    kernel_us: int = 200
    large: bool = False
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
    compiled: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return self.path.stem

    @property
    def has_table(self):
        return self.runtime != "system"

    @property
    def runtime_folder(self):
        return SOURCES / "build" / "hip" / self.runtime

    @property
    def runtime_library(self):
        return str(self.runtime_folder / "libamdhip64.so.7") if self.has_table else ctypes.util.find_library("amdhip64")

    def why_not_here(self):
        """What is missing on this machine, or None."""
        if sys.version_info < tuple(int(part) for part in self.python.removeprefix(">=").split(".")):
            return f"needs Python {self.python}"
        folders = [SOURCES / folder for folder in self.folders] + ([self.runtime_folder] if self.has_table else [])
        missing = [str(folder) for folder in folders if not folder.exists()]
        missing += [program for program in self.programs if not shutil.which(program)]
        missing += [library for library in self.libraries if not ctypes.util.find_library(library)]
        return f"needs {', '.join(missing)}" if missing else None


def read(path):
    header = re.search(r"^# /// script\n((?:#.*\n)*?)# ///$", path.read_text(), re.MULTILINE)[1]
    data = tomllib.loads(re.sub(r"^# ?", "", header, flags=re.MULTILINE))
    return Program(path, data.get("requires-python", ">=3.11"), data.get("dependencies", []), **data.get("tool", {}).get("xsched", {}))


def uses_the_agent(folder):
    """Wheels that bring HIP bring their own libhsa-runtime64, renamed. Whoever needs it gets the one of LD_LIBRARY_PATH."""
    for hsa in folder.glob("*.libs/libhsa-runtime64-*"):
        for library in hsa.parent.iterdir():
            subprocess.run(["patchelf", "--replace-needed", hsa.name, "libhsa-runtime64.so.1", str(library)], check=True)
        hsa.unlink()


def compile_libraries(program, place):
    place.mkdir()
    for library, source in program.compiled.items():
        subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", str(place / library), str(HERE / "libraries" / source)],
                       check=True)


def installed(program, folder):
    """The folder with the program's packages. Fetches them if they are not there."""
    if not program.dependencies:
        return None
    # Of other dependencies, or for another Python, it is another folder.
    what = repr((sys.implementation.cache_tag, program.dependencies, program.absent))
    place = folder / f"{program.name}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
    if place.exists():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        made = pathlib.Path(work) / "made"
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore",
                        "--no-deps", "--only-binary=:all:", "--target", str(made), *program.dependencies], check=True)
        uses_the_agent(made)
        absent.make(program.absent, made, made / ABSENT)
        # In one step, so that half of it is never found.
        os.rename(made, place)
    return place
