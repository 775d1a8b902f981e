"""The plugin for Ray, with a stand-in for Ray's own class. tests/deploy/ray runs it in a real cluster."""
import os
import pathlib
import shlex
import subprocess
import sys
import types
import tempfile
import unittest
from unittest import mock

import xsched.programs

plugin_module = types.ModuleType("ray._private.runtime_env.plugin")
plugin_module.RuntimeEnvPlugin = type("RuntimeEnvPlugin", (), {})
with mock.patch.dict(sys.modules, {"ray": types.ModuleType("ray"), "ray._private": types.ModuleType("ray._private"),
                                   "ray._private.runtime_env": types.ModuleType("ray._private.runtime_env"),
                                   "ray._private.runtime_env.plugin": plugin_module}):
    import xsched.ray


def started(value, xsched, **environment):
    """What the shell runs for a worker whose Python is `/usr/bin/env`: its environment, and what was logged. `environment`: of Ray's own
    process, and of the field env_vars."""
    context = types.SimpleNamespace(py_executable="/usr/bin/env")
    logger = mock.Mock()
    with mock.patch("xsched.programs.find", return_value=xsched):
        fields = {"env_vars": environment.get("env_vars", {}), **({} if value is None else {"xsched": value})}
        xsched_ray.modify_context([], fields, context, logger)
    inherited = {**os.environ, **environment.get("inherited", {}), **fields["env_vars"]}
    done = subprocess.run(["bash", "-c", f"exec {context.py_executable}"], env=inherited, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line), logger


xsched_ray = xsched.ray.XSchedPlugin()
PROGRAM = os.environ["XSCHED_TEST_PROGRAM"]


class RayPlugin(unittest.TestCase):
    def test_a_worker_has_the_hints_of_its_runtime_environment(self):
        environment, _ = started({"priority": 10, "latency_target_us": 5000, "gang": "all of it"}, PROGRAM)
        self.assertEqual((environment["XSCHED_AUTO_XQUEUE_PRIORITY"], environment["XSCHED_AUTO_XQUEUE_LATENCY_TARGET"],
                          environment["XSCHED_JOB"], environment["XSCHED_SCHEDULER"]), ("10", "5000", "all of it", "GLB"))

    def test_a_worker_is_in_no_job_unless_one_is_named(self):
        for value, environment, job in (({"priority": 10}, {}, None), ({"priority": 10}, {"inherited": {"XSCHED_JOB": "the node"}}, None),
                                        ({"gang": "mine"}, {"inherited": {"XSCHED_JOB": "the node"}}, "mine"),
                                        ({"priority": 10}, {"env_vars": {"XSCHED_JOB": "mine"}}, "mine")):
            with self.subTest(value=value, **environment):
                self.assertEqual(started(value, PROGRAM, **environment)[0].get("XSCHED_JOB"), job)

    def test_a_field_that_is_none_is_as_no_field(self):
        xsched_ray.validate({"xsched": None})

    def test_a_worker_without_the_field_is_left_as_it_is(self):
        environment, _ = started(None, PROGRAM)
        self.assertFalse([name for name in environment if name.startswith("XSCHED_AUTO")])

    def test_a_node_without_xsched_runs_the_worker_natively_and_says_so(self):
        environment, logger = started({"priority": 10}, None)
        self.assertNotIn("XSCHED_AUTO_XQUEUE_PRIORITY", environment)
        self.assertIn("not installed", logger.warning.call_args.args[0])

    def stand_in(self, script):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "xsched")
        path.write_text(script)
        path.chmod(0o755)
        return path

    def test_a_node_whose_xsched_does_not_answer_runs_the_worker_natively_and_says_so(self):
        for script, patience_s in (("#!/bin/sh\nexec sleep 60\n", 0.1), ("#!/nowhere/sh\n", 60)):
            with self.subTest(script), mock.patch("xsched.ray._PATIENCE_S", patience_s):
                environment, logger = started({"priority": 10}, str(self.stand_in(script)))
                self.assertNotIn("XSCHED_AUTO_XQUEUE_PRIORITY", environment)
                self.assertIn("does not answer", logger.warning.call_args.args[0])

    def test_the_same_options_are_tried_once(self):
        path = self.stand_in(f'#!/bin/sh\necho tried >> "$0.log"\nexec {shlex.quote(PROGRAM)} "$@"\n')
        with mock.patch("xsched.programs.find", return_value=str(path)):
            for priority in (10, 10, 11):
                xsched_ray.modify_context([], {"xsched": {"priority": priority}}, types.SimpleNamespace(py_executable="python"))
        self.assertEqual(path.with_name("xsched.log").read_text().count("tried"), 2)

    def test_what_is_wrong_is_said_before_a_worker_starts(self):
        for value, said in (("urgent", "dictionary"), ({"prio": 1}, "no key 'prio'"), ({"priority": "10"}, "type int"),
                            ({"priority": True}, "type int"), ({"memory": 20}, "type str")):
            with self.subTest(value=value), self.assertRaisesRegex(ValueError, said):
                xsched_ray.validate({"xsched": value})
        xsched_ray.validate({"pip": ["x"]})
        with self.assertRaisesRegex(ValueError, "priority"):
            started({"priority": 1000}, PROGRAM)

    def test_every_key_is_an_option_of_xsched_run(self):
        shown = subprocess.run([PROGRAM, "run", "--help"], capture_output=True, text=True, check=True).stdout
        for key in xsched.ray._KEYS:
            self.assertRegex(shown, rf"--{key.replace('_', '-')} ")

    def test_a_path_with_spaces_is_one_word(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(suffix=" of xsched")))
        (folder / "xsched").symlink_to(PROGRAM)
        environment, _ = started({"weight": 7}, str(folder / "xsched"))
        self.assertEqual(environment["XSCHED_AUTO_XQUEUE_WEIGHT"], "7", shlex.quote(str(folder)))


if __name__ == "__main__":
    unittest.main()
