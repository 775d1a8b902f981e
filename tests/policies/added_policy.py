#!/usr/bin/env python3
"""Programs that were built with one policy more, FCFS, say so wherever policies are named.

  added_policy.py PROGRAMS PACKAGING CASE
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*command, status=0):
    """What the command prints; it ends with that status."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    assert done.returncode == status, f"{command} ended with {done.returncode}: {done.stdout}"
    return done.stdout


def expect(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in:\n{text}"


def the_tool_and_the_server_know_it(programs, _packaging, folder):
    xsched = programs / "xsched"
    expect(run(xsched, "policy", "list"), "FCFS  first come, first served: one queue at a time, until it has no work (hints: none)",
           "HPF ", "\nUP ")
    expect(run(xsched, "policy", "set", "fifo", status=2), "there is no policy fifo (there are HPF, UP and FCFS)")
    expect(run(xsched, "policy", "set", "--help"), "HPF|UP|FCFS")
    expect(run(xsched, "config"), "HPF, UP or FCFS: schedule in the process")
    expect(run(programs / "xserver", "--help"), "FCFS (first come, first served")
    expect(run(programs / "xserver", "--user", "--policy", "fifo", status=1), "there are HPF, UP and FCFS")

    os.environ["XSCHED_SOCKET"] = str(folder / "socket")
    ready, theirs = os.pipe()
    server = subprocess.Popen([programs / "xserver", "--user", "--policy", "fcfs", "--ready-fd", str(theirs), "--log-level", "off"],
                              pass_fds=[theirs])
    try:
        os.close(theirs)
        assert os.read(ready, 1), "the server does not start"
        expect(run(xsched, "policy", "show"), "policy FCFS, ")
        expect(run(xsched, "policy", "set", "UP"), "policy UP, ")
        expect(run(xsched, "policy", "set", "FCFS"), "policy FCFS, ")
    finally:
        server.terminate()
        server.wait()


def completions_and_manuals_name_it(programs, packaging, folder):
    templates = [*packaging.glob("completions/*.in"), *packaging.glob("man/*.in")]
    assert len(templates) == 5, templates
    for template in templates:
        filled = folder / template.stem
        run(programs / "fill_in", template, filled)
        text = filled.read_text(encoding="utf-8")
        assert "@POLIC" not in text, text
        expect(text, "HPF, UP or FCFS" if template.parent.name == "man" else "HPF UP FCFS")
        if template.parent.name == "man":
            expect(text, ".It FCFS\nfirst come, first served: one queue at a time, until it has no work\n.Pq hints: none\n")
    # What bash offers.
    script = f'source {folder}/xsched.bash; COMP_WORDS=(xsched policy set F); COMP_CWORD=3; _xsched; echo "${{COMPREPLY[@]}}"'
    assert run("bash", "-c", script) == "FCFS\n"


with tempfile.TemporaryDirectory() as temporary:
    # The user's own settings stay out of it.
    for variable in [name for name in os.environ if name.startswith("XSCHED_")]:
        del os.environ[variable]
    os.environ["XDG_CONFIG_HOME"] = temporary
    os.environ["XDG_RUNTIME_DIR"] = temporary
    cases = {case.__name__: case for case in (the_tool_and_the_server_know_it, completions_and_manuals_name_it)}
    cases[sys.argv[3]](pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(temporary))
