"""Which of several files the C library is loaded from."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

FILE = "libpreempt.so.2"
INSTALLED = pathlib.Path(os.environ["XSCHED_LIBRARY_DIR"], FILE)


class Library(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(suffix=" of a program")))

    def assert_true_in_a_program(self, *lines):
        """In a program that has loaded another file than the one in XSCHED_LIBRARY_DIR."""
        shutil.copy(INSTALLED, self.folder / FILE)
        program = "\n".join(["import ctypes, os, shutil, sys, xsched", "path = sys.argv[1]", "loaded = ctypes.CDLL(path)", *lines])
        done = subprocess.run([sys.executable, "-B", "-c", program, str(self.folder / FILE)], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_one_that_the_program_has_loaded_is_used(self):
        self.assert_true_in_a_program("sys.exit(xsched.library('preempt')._handle != loaded._handle)")

    def test_it_is_used_also_if_an_upgrade_has_replaced_its_file(self):
        self.assert_true_in_a_program("shutil.copy(path, path + '.new')", "os.replace(path + '.new', path)",
                                      "sys.exit(xsched.library('preempt')._handle != loaded._handle)")


if __name__ == "__main__":
    unittest.main()
