#!/usr/bin/env python3
"""Programs that were built with one more policy, FCFS, show it wherever policies are named.

  added_policy.py PROGRAMS PACKAGING CASE
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from added_parts import expect, main, run  # noqa: E402


def policy_names(programs):
    """All policies, in the order of the list: FCFS and those of every build."""
    listed = run(programs / "xsched", "policy", "list")
    return [line.split()[0] for line in listed.splitlines() if line[:1].isupper()]


def listed(names):
    return f"{', '.join(names[:-1])} or {names[-1]}"


def the_tool_and_the_server_know_it(programs, _packaging, folder):
    xsched = programs / "xsched"
    names = policy_names(programs)
    assert {"HPF", "UP"} < set(names) and names[-1] == "FCFS", names
    there_are = f"there are {', '.join(names[:-1])} and FCFS"
    expect(run(xsched, "policy", "list"), "FCFS  first come, first served: one queue at a time, until it has no work (by queue; hints: none)",
           "HPF ", "\nUP ")
    expect(run(xsched, "policy", "set", "fifo", status=2), f"there is no policy fifo ({there_are})")
    expect(run(xsched, "policy", "set", "--help"), "|".join(names))
    expect(run(xsched, "config"), f"{listed(names)}: schedule in the process")
    expect(run(programs / "xserver", "--help"), "FCFS (first come, first served")
    expect(run(programs / "xserver", "--user", "--policy", "fifo", status=2), there_are)

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
    names = policy_names(programs)
    templates = [*packaging.glob("completions/*.in"), *packaging.glob("man/*.in")]
    assert len(templates) == 5, templates
    for template in templates:
        filled = folder / template.stem
        run(programs / "fill_in", template, filled)
        text = filled.read_text(encoding="utf-8")
        assert "@POLIC" not in text, text
        expect(text, listed(names) if template.parent.name == "man" else " ".join(names))
        if template.parent.name == "man":
            expect(text, ".It FCFS\nfirst come, first served: one queue at a time, until it has no work\n.Pq by queue; hints: none\n")
    # The completions that bash offers.
    script = f'source {folder}/xsched.bash; COMP_WORDS=(xsched policy set F); COMP_CWORD=3; _xsched; echo "${{COMPREPLY[@]}}"'
    assert run("bash", "-c", script) == "FCFS\n"


main(the_tool_and_the_server_know_it, completions_and_manuals_name_it)
