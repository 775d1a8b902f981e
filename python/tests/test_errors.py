"""Errors of the package, as values. No library of XSched is used."""
import copy
import pickle
import unittest

import xsched

ERRORS = (xsched.XSchedError("XQueueCreate", xsched.Result.ERROR_NOT_FOUND), xsched.XSchedError("XQueueCreate", 77),
          xsched.XSchedError("CudaQueueCreate", xsched.Result.ERROR_HARDWARE, "why"), xsched.RangeError("XHintWeight", "weight: too big"),
          xsched.ServerError("xsched list", xsched.Result.ERROR_NOT_FOUND, "there is no server"))


class Errors(unittest.TestCase):
    # Pools, Ray and joblib bring errors so from one process to another. A pool whose error cannot be read waits for ever.
    def test_an_error_can_be_pickled_and_copied(self):
        for error in ERRORS:
            copies = [copy.copy(error), *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1))]
            for same in copies:
                with self.subTest(error=error):
                    self.assertIs(type(same), type(error))
                    self.assertEqual((str(same), same.args, same.function, same.result),
                                     (str(error), error.args, error.function, error.result))

    def test_an_error_says_what_was_refused(self):
        self.assertEqual([str(error) for error in ERRORS], ["XQueueCreate: not found", "XQueueCreate: unknown result 77", "why",
                                                            "weight: too big", "there is no server"])


if __name__ == "__main__":
    unittest.main()
