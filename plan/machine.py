"""The machine on which the plan runs: its devices, the versions of its runtime, PyTorch and XSched, and what a test lacks there."""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import platform as host
import subprocess
import sys

from platforms import PLATFORMS

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Machine:
    platform: str | None  # one of PLATFORMS; None: no device of any
    answers: dict  # of device_probe.py, for each platform and for torch
    xsched: str

    @property
    def devices(self):
        return self.answers[self.platform].get("devices", []) if self.platform else []

    def hardware(self):
        answer = self.answers.get(self.platform, {})
        return {"devices": self.devices, "driver": answer.get("driver", ""),
                "memory_gib": self.answers["torch"].get("memory_gib", 0), "cores": len(os.sched_getaffinity(0)),
                "kernel": host.release()}

    def runtime(self):
        answer = self.answers.get(self.platform, {})
        platform = PLATFORMS.get(self.platform)
        return {"platform": platform.NAME if platform else "", "version": answer.get("version", ""),
                "distribution": platform.distribution() if platform else "",
                "pytorch": self.answers["torch"].get("version", ""), "python": host.python_version()}

    def lines(self):
        """The text above the tables."""
        hardware, runtime = self.hardware(), self.runtime()
        if self.platform is None:
            problems = (f"{platform.NAME}: {problem(self.answers[name])}" for name, platform in PLATFORMS.items())
            what = [f"no device ({'; '.join(problems)})"]
        else:
            devices = hardware["devices"]
            driver = f", driver {hardware['driver']}" if hardware["driver"] else ""
            distribution = f", {runtime['distribution']}" if runtime["distribution"] else ""
            what = [f"{len(devices)} × {devices[0]}{driver}", f"{runtime['platform']} {runtime['version']}{distribution}"]
        torch = runtime["pytorch"] or self.answers["torch"].get("problem", "not installed")
        return [*what, f"PyTorch {torch}, Python {runtime['python']}", f"XSched {self.xsched}",
                f"{hardware['cores']} cores, Linux {hardware['kernel']}"]

    def missing(self, test):
        """Why the test is not possible here, in a few words; None: it is possible."""
        if self.platform is None:
            return "no device"
        if not test.needs_torch:
            return None
        torch = self.answers["torch"]
        if "problem" in torch:
            return f"PyTorch: {torch['problem']}"
        if not torch.get(self.platform):
            return f"this PyTorch ({torch['version']}) is not for {PLATFORMS[self.platform].NAME}"
        return None if torch["devices"] else "PyTorch sees no device"


def problem(answer):
    return answer.get("problem") or ("" if answer.get("devices") else "no device")


def choose(answers, wanted=None):
    """The platform to test: the one that was asked for, if it has a device; else PyTorch's; else any with one."""
    if wanted:
        return None if problem(answers[wanted]) else wanted
    torch = answers["torch"]
    with_devices = [name for name in PLATFORMS if not problem(answers[name])]
    return next((name for name in with_devices if torch.get(name)), next(iter(with_devices), None))


def probe(part):
    command = [sys.executable, str(HERE / "device_probe.py"), part]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return {"problem": "does not answer"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"problem": f"crashes (status {done.returncode})"}
    return json.loads(lines[-1])


def examine(binaries, wanted=None):
    parts = (*PLATFORMS, "torch")
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        answers = dict(zip(parts, pool.map(probe, parts)))
    # The runtime may be only in PyTorch, whose wheels bring it for some platforms.
    torch = answers["torch"]
    for name in PLATFORMS:
        if problem(answers[name]) and torch.get(name) and torch["devices"]:
            answers[name] = {"devices": torch["devices"], "version": torch[name], "driver": ""}
    return Machine(choose(answers, wanted), answers, xsched_version(binaries))


def xsched_version(binaries):
    try:
        done = subprocess.run([str(binaries / "xsched"), "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown: {error}"
    return done.stdout.strip().removeprefix("xsched ") or f"unknown: {done.stderr.strip()}"
