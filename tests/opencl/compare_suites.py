#!/usr/bin/env python3
"""Third-party programs behave the same with and without XSched.

  compare_suites.py --xsched PROGRAM NAME…     NAME: clinfo, clpeak, hashcat, pyopencl

pyopencl's tests come with the source distribution (PyPI) of the installed version. Only those of the OpenCL API run, because those of its
array library take an hour on a CPU. If the distribution cannot be downloaded, the test is skipped (exit status 77).
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

SKIPPED = 77


def run(command, folder, timeout=600):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=timeout)
    return done.returncode, done.stdout


@contextlib.contextmanager
def server(xsched, folder):
    """Starts a server that ends with this script."""
    os.environ["XSCHED_SOCKET"] = os.path.join(folder, "s")
    process = subprocess.Popen([os.path.join(os.path.dirname(xsched), "xserver"), "--socket", os.environ["XSCHED_SOCKET"],
                                "--log-level", "error"])
    try:
        while not os.path.exists(os.environ["XSCHED_SOCKET"]) and process.poll() is None:
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        process.wait()


def need(program):
    if shutil.which(program) is None:
        print(f"skipped: {program} is not installed")
        sys.exit(SKIPPED)


def compare(name, native, scheduled):
    if native != scheduled:
        print(f"{name}: natively {native}\n{name}: under XSched {scheduled}")
        sys.exit(1)
    print(f"{name}: the same with and without XSched: {native}")


def clinfo(under, folder):
    need("clinfo")
    native, scheduled = run(["clinfo"], folder), run(under + ["clinfo"], folder)
    # A layer may add itself to the loader's description; everything about platforms and devices must be equal.
    lines = [[line for line in text.splitlines() if "oader" not in line] for _, text in (native, scheduled)]
    if lines[0] != lines[1]:
        sys.exit("clinfo differs:\n" + "\n".join(f"{a}\n{b}" for a, b in zip(*lines) if a != b))
    compare("clinfo", (native[0], f"{len(lines[0])} lines"), (scheduled[0], f"{len(lines[1])} lines"))


def clpeak(under, folder):
    need("clpeak")

    def tests(text):
        # Only which tests gave a figure, because the figures differ from run to run.
        return sorted(set(re.findall(r"^\s+(\w[\w ]*?)\s*: [\d.]+", text, flags=re.M)))

    command = ["clpeak", "--global-bandwidth", "--kernel-latency", "--transfer-bandwidth"]
    native, scheduled = run(command, folder), run(under + command, folder)
    compare("clpeak", (native[0], tests(native[1])), (scheduled[0], tests(scheduled[1])))


def hashcat(under, folder):
    need("hashcat")
    # Its own self-test runs first, on every start; then it finds a password.
    command = ["hashcat", "-a", "3", "-m", "0", "--force", "-D", "1,2", "--potfile-disable", "--restore-disable",
               "--logfile-disable", "-w", "1", "5f4dcc3b5aa765d61d8327deb882cf99", "passw?l?l?l"]

    def outcome(result):
        code, text = result
        return code, re.findall(r"^[0-9a-f]{32}:\w+", text, flags=re.M), "self-test failed" in text.lower()

    compare("hashcat", outcome(run(command, folder)), outcome(run(under + command, folder)))


def download_source(requirement, folder):
    """Downloads the source distribution. pip is ended as soon as it has it, because next it would build it, and numpy for it."""
    scratch = pathlib.Path(folder) / "pip"
    scratch.mkdir()
    pip = subprocess.Popen([sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--no-binary", ":all:",
                            requirement, "-d", str(scratch)], env={**os.environ, "TMPDIR": str(scratch)},
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(600):
            for archive in scratch.rglob(requirement.split("==")[0] + "-*.tar.gz"):
                try:
                    with tarfile.open(archive) as whole:
                        whole.getmembers()
                    return shutil.copy(archive, folder)
                except (tarfile.TarError, EOFError, OSError):
                    pass  # still growing
            if pip.poll() is not None:
                return None
            time.sleep(0.1)
        return None
    finally:
        if pip.poll() is None:
            os.killpg(pip.pid, signal.SIGKILL)
        pip.wait()


def pyopencl(under, folder):
    python = "/usr/bin/python3"
    version = subprocess.run([python, "-c", "import pyopencl; print(pyopencl.VERSION_TEXT)"], capture_output=True, text=True)
    if version.returncode != 0:
        print("skipped: python3-pyopencl is not installed")
        sys.exit(SKIPPED)
    version = version.stdout.strip()
    source = pathlib.Path(os.environ.get("XSCHED_TEST_DOWNLOADS", folder)) / f"pyopencl-{version}"
    if not source.exists():
        archive = download_source(f"pyopencl=={version}", folder)
        if archive is None:
            print(f"skipped: the source of pyopencl {version} cannot be had")
            sys.exit(SKIPPED)
        source.parent.mkdir(parents=True, exist_ok=True)
        shutil.unpack_archive(archive, source.parent)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rA",
               "test_wrapper.py", "test_enqueue_copy.py", "test_arrays_in_structs.py"]

    def outcomes(result):
        return sorted(re.findall(r"^(PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS) (\S+)", result[1], flags=re.M))

    native = outcomes(run(command, source / "test", timeout=120))
    scheduled = outcomes(run(under + command, source / "test", timeout=120))
    differing = sorted(set(native) ^ set(scheduled))
    if differing or not native:
        sys.exit(f"pyopencl's tests differ: {differing}" if native else "pyopencl's tests did not run")
    counts = {kind: sum(k == kind for k, _ in native) for kind, _ in native}
    print(f"pyopencl {version}: the same with and without XSched: {counts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xsched", required=True)
    parser.add_argument("names", nargs="+", choices=["clinfo", "clpeak", "hashcat", "pyopencl"])
    options = parser.parse_args()
    for name in list(os.environ):
        if name.startswith("XSCHED_AUTO") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
            del os.environ[name]
    with tempfile.TemporaryDirectory() as folder, server(options.xsched, folder):
        for name in options.names:
            globals()[name]([options.xsched, "run", "--no-server", "--"], folder)


if __name__ == "__main__":
    main()
