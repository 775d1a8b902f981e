#!/usr/bin/env python3
"""Makes the pictures in docs/images again: xsched top while two OpenCL programs run, and the pages of simulate and of the test plan.

  screenshots.py [--bin build/release/bin] [--only NAME,…]

Needs the Debian packages chromium, fonts-dejavu-core, python3-pyte (a terminal, whose text becomes a page) and PoCL.
"""
import argparse
import fcntl
import html
import json
import os
import pathlib
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "plan"), str(ROOT / "bench" / "gpu"), str(ROOT / "tests" / "pages")]
import results_page  # noqa: E402
from browser_test import browse  # noqa: E402

IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 300_000
COLUMNS, LINES = 110, 16  # of the terminal
# As terminals name them, readable on white.
COLORS = {"default": "#1a1a1a", "green": "#2e7d32", "brown": "#9a6700", "red": "#b91c1c"}


def picture(source, name, width, height):
    """What a browser shows of a page, from its top."""
    image = IMAGES / f"{name}.png"
    image.unlink(missing_ok=True)
    browse(source, f"--screenshot={image}", f"--window-size={width},{height}")
    size = image.stat().st_size if image.exists() else 0
    if not 5000 < size < MOST_BYTES:
        sys.exit(f"{image}: {size} bytes")
    print(f"{image.relative_to(ROOT)}: {size} bytes")


def simulate(options, folder):
    path = folder / "simulate.html"
    subprocess.run([options.bin / "xsched", "simulate", "priority", "--warm-up", "1", "--policy", "native,FIFO,HPF,UP,EEVDF", "--html", path],
                   check=True, stdout=subprocess.DEVNULL)
    picture(path, "simulate", 900, 860)


def plan(_, folder):
    """The results in docs/benchmarks that are measurements."""
    records = json.loads((ROOT / "docs" / "benchmarks" / "h200-plan.json").read_text(encoding="utf-8"))
    hardware, runtime = records[0]["hardware"], records[0]["runtime_version"]
    lines = [f"{len(hardware['devices'])} × {hardware['devices'][0]}, driver {hardware['driver']}", f"{runtime['platform']} {runtime['version']}",
             f"PyTorch {runtime['pytorch']}, Python {runtime['python']}", f"XSched {records[0]['xsched_version']}"]
    records = [{"plots": [], "latencies": {}, **record} for record in records if record["criteria"]]
    machine = types.SimpleNamespace(lines=lambda: lines)
    path = folder / "plan.html"
    path.write_text(results_page.page(records, machine), encoding="utf-8")
    picture(path, "plan", 1140, 950)


def top(options, folder):
    environment = {**os.environ, "XSCHED_SOCKET": str(folder / "socket"), "POCL_DEVICES": "pthread", "LC_ALL": "C.UTF-8"}
    task = options.bin / "xsched-latency-task"
    loops = subprocess.run([task, "--calibrate"], check=True, capture_output=True, text=True, env=environment).stdout.strip()
    every = ["--kernel-ms", "2", "--loops-per-ms", loops, "--seconds", "60", "--json", "/dev/null"]
    programs = [subprocess.Popen([options.bin / "xserver", "--socket", folder / "socket"], stderr=subprocess.DEVNULL)]
    time.sleep(1)
    for name, priority, more in (("serve", "10", ["--kernels", "10", "--rate", "10"]), ("train", "0", ["--continuous"])):
        (folder / name).symlink_to(task)
        programs.append(subprocess.Popen([options.bin / "xsched", "run", "--priority", priority, "--", folder / name, *every, *more],
                                         env=environment))
    try:
        time.sleep(3)
        text = terminal([options.bin / "xsched", "top", "--delay", "0.5", "--count", "24"], environment)
    finally:
        for program in reversed(programs):
            program.kill()
            program.wait()
    path = folder / "top.html"
    path.write_text(page.document("top", text).replace("<h1>top</h1>", ""), encoding="utf-8")
    picture(path, "top", 1000, 345)


def terminal(command, environment):
    """What a command shows on a terminal before it ends, as HTML."""
    import pyte  # pylint: disable=import-outside-toplevel
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    child, descriptor = pty.fork()
    if child == 0:
        os.execve(command[0], command, {**environment, "TERM": "linux", "LINES": str(LINES), "COLUMNS": str(COLUMNS)})
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    last = ""
    while select.select([descriptor], [], [], 30)[0]:
        try:
            stream.feed(os.read(descriptor, 65536))
        except OSError:  # it has ended
            break
        if screen.display[0].startswith("xserver"):
            last = as_html(screen)
    os.waitpid(child, 0)
    return last


def as_html(screen):
    lines = []
    for y in range(screen.lines):
        cells = (screen.buffer[y][x] for x in range(screen.columns))
        lines.append("".join(f'<span style="{style(cell)}">{html.escape(cell.data)}</span>' for cell in cells))
    return '<pre style="font: 14px/1.3 DejaVu Sans Mono, monospace; color-scheme: light; background: #fff">' + "\n".join(lines) + "</pre>"


def style(cell):
    color, behind = COLORS.get(cell.fg, COLORS["default"]), "#fff"
    if cell.reverse:
        color, behind = behind, color
    return (f"color: {color}; background: {behind}" + ("; font-weight: bold" if cell.bold else "")
            + ("; text-decoration: underline" if cell.underscore else ""))


PICTURES = {"simulate": simulate, "plan": plan, "top": top}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=lambda text: pathlib.Path(text).resolve(), default=ROOT / "build" / "release" / "bin")
    parser.add_argument("--only", default=",".join(PICTURES))
    options = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(prefix="xsched-screenshots-") as folder:
            PICTURES[name](options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
