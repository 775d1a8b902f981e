"""Which of several files the C library is loaded from."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import xsched
from xsched.programs import INSTALLED as WHEEL

FILE = "libpreempt.so.2"
INSTALLED = pathlib.Path(xsched.library("preempt")._name)


class Library(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(suffix=" of a program")))

    def assert_true_in_a_program(self, *lines):
        """In a program that has loaded another file than the one that the package would load."""
        shutil.copy(INSTALLED, self.folder / FILE)
        program = "\n".join(["import ctypes, os, shutil, sys, xsched", "path = sys.argv[1]", "loaded = ctypes.CDLL(path)", *lines])
        done = subprocess.run([sys.executable, "-B", "-c", program, str(self.folder / FILE)], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipIf(WHEEL.exists(), "a wheel has its own")
    def test_it_is_found_beside_the_program_although_the_packages_own_command_is_before_that_in_the_path(self):
        environment, installed = self.folder / "venv" / "bin", self.folder / "xsched"
        for folder in (environment, installed / "bin", installed / "lib"):
            folder.mkdir(parents=True)
        (environment / "xsched").write_text("#!/bin/sh\n")
        (environment / "xsched").chmod(0o755)
        shutil.copy("/bin/true", installed / "bin" / "xsched")
        shutil.copy(INSTALLED, installed / "lib" / FILE)
        inherited = {name: value for name, value in os.environ.items() if name not in ("XSCHED_LIBRARY_DIR", "LD_LIBRARY_PATH")}
        inherited["PATH"] = os.pathsep.join([str(environment), str(installed / "bin"), os.environ["PATH"]])
        done = subprocess.run([sys.executable, "-B", "-c", "import xsched; print(xsched.library('preempt')._name)"], env=inherited,
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout.strip(), done.stderr), (str(installed / "lib" / FILE), ""))

    @unittest.skipIf(WHEEL.exists(), "a wheel has its own")
    def test_if_none_can_be_loaded_the_error_says_what_is_wrong_with_the_file_that_is_there(self):
        (self.folder / "lib").mkdir()
        (self.folder / "lib" / FILE).write_text("no library")
        program = "\n".join(["import sys, xsched", "sys.prefix = sys.argv[1]", "try: xsched.library('preempt')", "except OSError as error: print(error)"])
        inherited = {name: value for name, value in os.environ.items() if name not in ("XSCHED_LIBRARY_DIR", "LD_LIBRARY_PATH")}
        done = subprocess.run([sys.executable, "-B", "-c", program, str(self.folder)], env={**inherited, "PATH": ""}, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stderr, "")
        if done.stdout == "":
            self.skipTest("an XSched is installed on this machine")
        self.assertRegex(done.stdout, f"cannot be loaded \\({self.folder}/lib/{FILE}: file too short\\); XSCHED_LIBRARY_DIR")

    @unittest.skipUnless(WHEEL.exists(), "this is no wheel")
    def test_that_of_a_wheel_is_before_one_that_the_linker_would_find(self):
        shutil.copy(INSTALLED, self.folder / FILE)
        done = subprocess.run([sys.executable, "-B", "-c", "import xsched; print(xsched.library('preempt')._name)"],
                              env={**os.environ, "LD_LIBRARY_PATH": str(self.folder)}, capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout.strip(), done.stderr), (str(WHEEL / "lib" / FILE), ""))

    def test_of_a_library_that_is_too_old_only_what_it_does_not_have_is_an_error(self):
        """That of mathematics has nothing of XSched: it is as old as can be."""
        mathematics = ctypes.CDLL("libm.so.6")
        with open("/proc/self/maps", encoding="utf-8") as maps:
            path = next(line.split()[-1] for line in maps if line.rstrip().endswith("/libm.so.6"))
        del mathematics
        shutil.copy(path, self.folder / FILE)
        program = "\n".join(["import xsched", "from xsched.library import call", "try: call('preempt', 'XQueueList', None, 0, None)",
                             "except xsched.XSchedError as error: print(error.result.name, error)"])
        done = subprocess.run([sys.executable, "-B", "-c", program], env={**os.environ, "XSCHED_LIBRARY_DIR": str(self.folder)},
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout.strip(), done.stderr),
                         (f"ERROR_NOT_SUPPORTED XQueueList: not supported: {self.folder / FILE} is older than this package", ""))

    def test_one_that_the_program_has_loaded_is_used(self):
        self.assert_true_in_a_program("sys.exit(xsched.library('preempt')._handle != loaded._handle)")

    def test_it_is_used_also_if_an_upgrade_has_replaced_its_file(self):
        self.assert_true_in_a_program("shutil.copy(path, path + '.new')", "os.replace(path + '.new', path)",
                                      "sys.exit(xsched.library('preempt')._handle != loaded._handle)")


if __name__ == "__main__":
    unittest.main()
