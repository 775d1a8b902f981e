#!/usr/bin/env python3
"""Programs that were built with one platform more, the abacus, know it wherever platforms are named.

  added_platform.py PROGRAMS PACKAGING CASE
"""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from added_parts import expect, main, run  # noqa: E402


def the_tool_sets_its_variables_and_explains_them(programs, _packaging, folder):
    xsched = programs / "xsched"
    expect(run(xsched, "config"), "XSCHED_CUDA_LIB", "XSCHED_ABACUS_BEADS", "1 to 10: beads on a wire",
           "Abacus layers, the shim among them")
    expect(run(xsched, "config", XSCHED_ABACUS_BEADS="11"), "XSCHED_ABACUS_BEADS=11 is not a whole number from 1 to 10")
    expect(run(xsched, "run", "--help"), "layer: through the OpenCL or Abacus loader")
    (folder / "bin").mkdir()
    installed = shutil.copy(xsched, folder / "bin")
    under = [installed, "run", "--no-server", "--", "sh", "-c", "echo layers:$ABACUS_LAYERS"]
    expect(run(*under), "libshimabacus.so is not installed: its platform's programs run unscheduled", "layers:\n")
    shim = folder / "lib/libshimabacus.so"
    shim.parent.mkdir()
    shim.touch()
    expect(run(*under), f"layers:{shim}\n")


def the_doctor_examines_it(programs, _packaging, folder):
    xsched = programs / "xsched"
    expect(run(xsched, "doctor"), "[ok]      Abacus      beads 3.1\n", "0000:01:00.0 Roman: preemption level 1\n", "scheduled: yes")
    assert json.loads(run(xsched, "doctor", "--probe", "abacus"))["version"] == "3.1"
    expect(json.loads(run(xsched, "doctor", "--probe", "nothing"))["error"], "there is no probe of nothing")
    program = folder / "program"
    program.write_bytes(pathlib.Path("/bin/sh").read_bytes() + b"libabacus.so")
    program.chmod(0o755)
    expect(run(xsched, "doctor", program), f"{program} names the abacus' frame: its layers reach it")


def the_manual_names_it(programs, packaging, folder):
    run(programs / "fill_in", packaging / "man/xsched.1.in", folder / "manual")
    expect((folder / "manual").read_text(encoding="utf-8"), ".It Ev XSCHED_ABACUS_BEADS\nHow many beads are on a wire.\n",
           ".Ev OPENCL_LAYERS\n(OpenCL) and\n.Ev ABACUS_LAYERS\n(Abacus).\n")


main(the_tool_sets_its_variables_and_explains_them, the_doctor_examines_it, the_manual_names_it)
