#!/usr/bin/env python3
"""Usage: package_tests.py FOLDER MODULE: a module of the Python package's tests (FOLDER: python/tests), over the package that is installed in
this interpreter's environment. It fails also if the package, or one of XSched's libraries, came from elsewhere: something else was tested then.
"""
import os
import pathlib
import re
import sys
import unittest

LIBRARY = re.compile(r"/lib(preempt|hal\w+|shim\w+)\.so[.\d]*$")


def of_xsched():
    """The files of XSched that this process uses: the package's modules, and libraries."""
    modules = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "xsched" and getattr(module, "__file__", None)]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        mapped = {line.rstrip("\n").split(maxsplit=5)[-1] for line in maps}
    return [pathlib.Path(path).resolve() for path in [*modules, *filter(LIBRARY.search, mapped)]]


def main(folder, module):
    os.chdir(folder)  # where programs of the tests look for modules, too
    sys.path.insert(0, folder)
    result = unittest.main(module=module, argv=[module], exit=False).result
    used = of_xsched()
    foreign = [path for path in used if pathlib.Path(sys.prefix).resolve() not in path.parents]
    if not used or foreign:
        sys.exit(f"{module} has not tested the installed package, but {' '.join(map(str, foreign)) or 'nothing of XSched'}")
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)


main(*sys.argv[1:])
