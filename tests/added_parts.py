"""What the tests of programs share that were built with one part more (a policy, a platform)."""
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*command, status=0, **variables):
    """Returns the command's output, and checks its exit status. `variables` are added to the environment."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30,
                          env={**os.environ, **variables})
    assert done.returncode == status, f"{command} ended with {done.returncode}: {done.stdout}"
    return done.stdout


def expect(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in:\n{text}"


def main(*cases):
    """Runs the case that the command line names: SCRIPT PROGRAMS PACKAGING CASE."""
    programs, packaging, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        # Without the user's own settings.
        for variable in [name for name in os.environ if name.startswith("XSCHED_")]:
            del os.environ[variable]
        os.environ["XDG_CONFIG_HOME"] = temporary
        os.environ["XDG_RUNTIME_DIR"] = temporary
        {case.__name__: case for case in cases}[name](pathlib.Path(programs), pathlib.Path(packaging), pathlib.Path(temporary))
