"""What a program says that it needs, and how it gets that."""
import ctypes
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import absent
import program

PROGRAM = """# /// script
# requires-python = ">=3.99"
# dependencies = ["one==1"]
# [tool.xsched]
# runtime = "7.0.0"
# [tool.xsched.env]
# HIP_PATH = "{runtime}"
# ///
print()
"""


class Programs(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def read(self, text):
        path = self.place / "one.py"
        path.write_text(text)
        return program.read(path)

    def link(self, name, source, *others):
        library = self.place / name
        library.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-w", "-shared", "-fPIC", "-xc", "-o", str(library), f"-Wl,-soname,{library.name}", "-", "-xnone",
                        "-Wl,--no-as-needed", *others], input=source, check=True, text=True)
        return library

    def test_the_header_says_what_a_program_needs(self):
        one = self.read(PROGRAM)
        self.assertEqual((one.name, one.dependencies, one.gpus, one.large), ("one", ["one==1"], ["gfx90a"], False))
        self.assertTrue(one.runtime_library.endswith("build/hip/7.0.0/libamdhip64.so.7"))
        self.assertEqual(one.env, {"HIP_PATH": "{runtime}"})

    def test_a_word_that_nothing_reads_is_an_error(self):
        with self.assertRaises(TypeError):
            self.read(PROGRAM.replace("runtime =", "runtimes ="))

    def test_what_is_missing_is_said(self):
        self.assertEqual(self.read(PROGRAM).why_not_here(), "needs Python >=3.99")
        here = PROGRAM.replace("3.99", "3.11").replace('"7.0.0"', '"system"\n# programs = ["no-such-program"]')
        self.assertEqual(self.read(here).why_not_here(), "needs no-such-program")

    def test_all_programs_pin_what_they_need(self):
        paths = list((program.HERE / "programs").glob("*.py"))
        self.assertTrue(paths)
        for one in map(program.read, paths):
            for dependency in one.dependencies:
                self.assertRegex(dependency, "==[0-9.]+$", one.name)

    def test_a_stand_in_has_the_functions_that_are_taken_from_it(self):
        (self.place / "packages").mkdir()
        script = self.place / "map"
        script.write_text("ABSENT_1 { thing_one; };\n")
        real = self.link("libthing.so.1", "int thing_one(void) { return 1; } int thing_two(void) { return 2; }",
                         f"-Wl,--version-script={script}")
        source = "int thing_one(void); int thing_two(void); int use(void) { return thing_one() + thing_two() + 5; }"
        user = self.link("packages/user.so", source, str(real))
        absent.make({"libthing.so.1": "thing"}, self.place / "packages", self.place / "absent")
        ctypes.CDLL(str(self.place / "absent" / "libthing.so.1"))
        self.assertEqual(ctypes.CDLL(str(user)).use(), 5)

    @unittest.skipUnless(shutil.which("patchelf"), "needs patchelf")
    def test_what_brings_its_own_hsa_uses_the_agent(self):
        hsa = self.link("one.libs/libhsa-runtime64-01234567.so.1", "")
        user = self.link("one.libs/libuser.so", "", str(hsa))
        program.uses_the_agent(self.place)
        self.assertFalse(hsa.exists())
        needed = subprocess.run(["patchelf", "--print-needed", str(user)], check=True, capture_output=True, text=True).stdout
        self.assertEqual(needed.split()[0], "libhsa-runtime64.so.1")


if __name__ == "__main__":
    unittest.main()
