#!/usr/bin/env python3
"""What systemd-analyze says of the units that run for all users: their exposure is below 1.0 (0.0 is the least, 10.0 the most). The unit
for one user is left out: most of what it counts needs privileges that a user's service manager does not have."""
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
MOST = 9  # tenths


def exposure(unit):
    """True if systemd-analyze finds it low enough; and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / unit.name.removesuffix(".in")
        # The program need not be installed: only its settings are looked at.
        copy.write_text("".join(f"ExecStart={sys.executable}\n" if line.startswith("ExecStart=") else line
                                for line in unit.read_text().splitlines(keepends=True)))
        found = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={MOST}", copy],
                               capture_output=True, text=True, check=False)
    text = found.stdout + found.stderr
    if "Overall exposure level" not in text:
        sys.exit(f"systemd-analyze does not judge {unit.name}:\n{text}")
    return found.returncode == 0, text


def main():
    units = sorted(unit for unit in FOLDER.glob("*.service.in") if unit.name != "xserver-user.service.in")
    if not units:
        sys.exit("there are no units")
    faults = [text for low, text in map(exposure, units) if not low]
    if faults:
        sys.exit("\n".join(faults))


main()
