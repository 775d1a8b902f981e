"""What counts as the same."""
import collections
import unittest

import run


def result(**other):
    values = {"output": "1\n", "errors": "", "status": 0, "seconds": 1.0, "submitted": 3, "holds": 50}
    return run.Result(**{**values, "kernels": collections.Counter(add=3), **other})


class Failures(unittest.TestCase):
    def assert_failure(self, text, way=run.HELD, **other):
        self.assertRegex("\n".join(run.failures(way, result(**other), result())), text)

    def test_the_same_output_and_kernels_are_no_failure(self):
        for way in run.WAYS:
            self.assertEqual(list(run.failures(way, result(), result())), [])

    def test_other_output_is_one(self):
        self.assert_failure("writes", output="2\n")

    def test_a_kernel_more_and_a_kernel_less_is_one(self):
        self.assert_failure("more Counter.*'add': 1", kernels=collections.Counter(add=4))
        self.assert_failure("fewer Counter.*'add': 1", kernels=collections.Counter(add=2))

    def test_an_error_is_one(self):
        self.assert_failure("ends with -11: lost", status=-11, errors="lost")

    def test_a_program_that_launches_nothing_natively_shows_nothing(self):
        self.assert_failure("no kernels", run.NATIVE, kernels=collections.Counter())

    def test_a_program_that_xsched_does_not_see_or_hold_is_one(self):
        self.assert_failure("not scheduled", run.TABLE, submitted=0)
        self.assert_failure("held 0 times only", holds=0)


if __name__ == "__main__":
    unittest.main()
