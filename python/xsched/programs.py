"""The programs of XSched that a wheel has, as commands: xsched, xserver and xcli."""
import os
import pathlib
import sys
from typing import List, NoReturn, Optional

# In a wheel, what `cmake --install` installs. Elsewhere it does not exist.
INSTALLED = pathlib.Path(__file__).resolve().parent / "_installed"


def _is_program(path: pathlib.Path) -> bool:
    """True if it is the program itself, and not one of this package's commands."""
    try:
        with open(path, "rb") as file:
            return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"
    except OSError:
        return False


def find(name: str) -> Optional[str]:
    """The path of a program: that of this wheel, or beside the folder of libraries that XSCHED_LIBRARY_DIR names, or in PATH; None: there is
    none."""
    folders = [INSTALLED / "bin"]
    if libraries := os.environ.get("XSCHED_LIBRARY_DIR"):
        folders.append(pathlib.Path(libraries).parent / "bin")
    folders += [pathlib.Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return next((str(folder / name) for folder in folders if _is_program(folder / name)), None)


def run(name: str, arguments: List[str]) -> NoReturn:
    """Becomes the program."""
    path = find(name)
    if path is None:
        sys.exit(f"{name}: this package was installed without programs: install XSched, and set PATH or XSCHED_LIBRARY_DIR")
    os.execv(path, [name, *arguments])


def xsched() -> NoReturn:
    """The command xsched."""
    run("xsched", sys.argv[1:])


def xserver() -> NoReturn:
    """The command xserver."""
    run("xserver", sys.argv[1:])


def xcli() -> NoReturn:
    """The command xcli."""
    run("xcli", sys.argv[1:])
