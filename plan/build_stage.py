"""Stage 1: the build or the installation is complete, and finds the device."""
import json
import os
import pathlib
import shutil
import sys
import tempfile

from catalogue import CATALOGUE, ROOT, Failed, Skipped
from platforms import PLATFORMS

C_PROGRAM = """
#include <xsched/xsched.h>
int main(void) {
  XQueueState state;
  if (XQueueQuery(1, &state) != kXSchedErrorNotFound) return 1;
  return XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst) == kXSchedSuccess ? 0 : 2;
}
"""


@CATALOGUE.test("1.1", "programs and libraries are there, of one version, and load", torch=False)
def programs_and_libraries(bed):
    versions = set()
    for program in ("xsched", "xserver"):
        status, text = bed.output([bed.binaries / program, "--version"])
        bed.expect(status == 0, f"{program} --version: status {status}")
        versions.add(text.split()[-1] if text.split() else "")
    bed.expect(len(versions) == 1, f"xsched and xserver are of different versions: {', '.join(sorted(versions))}")
    for name in ("preempt", f"hal{bed.platform}", f"shim{bed.platform}"):
        library = bed.library(name)
        bed.metrics[name] = str(library)
        # Resolve every symbol at once, in a separate process, so that a missing one shows here and not in a program.
        load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
        status, _ = bed.output([sys.executable, "-c", load, library], environment={"LD_BIND_NOW": "1"})
        bed.expect(status == 0, f"{library} does not load")


@CATALOGUE.test("1.2", "a C program builds against the API and runs", torch=False)
def c_program(bed):
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise Skipped("a C compiler")
    headers = next((folder for folder in (bed.binaries.parent / "include", ROOT / "include")
                    if (folder / "xsched" / "xsched.h").is_file()), None)
    if headers is None:
        raise Skipped("XSched's headers")
    library = bed.library("preempt")
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "program.c"), pathlib.Path(folder, "program")
        source.write_text(C_PROGRAM, encoding="ascii")
        status, _ = bed.output([compiler, "-std=c11", "-Wall", "-Werror", source, "-o", program, f"-I{headers}",
                                f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-lpreempt"], seconds=60)
        if status != 0:
            raise Failed("it does not build")
        status, _ = bed.output([program])
        bed.expect(status == 0, f"the program ends with {status}")


@CATALOGUE.test("1.3", "the server starts, answers and takes a policy", torch=False)
def server(bed):
    with bed.server():
        bed.expect("policy HPF" in bed.xsched("policy", "show"), "the server does not begin with HPF")
        bed.expect("policy UP" in bed.xsched("policy", "set", "UP"), "the server does not take UP")
        bed.expect(json.loads(bed.xsched("list", "--json")) == [], "a new server has queues")


@CATALOGUE.test("1.4", "the doctor finds the device, and says that programs would be scheduled", torch=False)
def doctor(bed):
    status, text = bed.output([bed.binaries / "xsched", "doctor", "--json"], seconds=60)
    answer = json.loads(text)
    name = PLATFORMS[bed.platform].NAME
    told = [finding for finding in answer["findings"] if finding["about"] == name]
    for finding in told:
        bed.note(f"[{finding['kind']}] {finding['text']}")
    bed.expect(status == 0 and answer["scheduled"], f"the doctor: {answer.get('obstacle', f'status {status}')}")
    bed.expect(any(finding["kind"] == "ok" for finding in told), f"the doctor finds nothing good about {name}")
    for finding in told:
        bed.expect(finding["kind"] != "problem", finding["text"])
