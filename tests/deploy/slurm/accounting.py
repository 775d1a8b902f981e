"""Slurm's accounting for a test: MariaDB and slurmdbd, in a folder, reached by a socket there. They end with close()."""
import getpass
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from harness import check, wait_until  # noqa: E402

PROGRAMS = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")


def is_installed():
    return all(shutil.which(program) for program in PROGRAMS)


class Accounting:
    """`folder`: of slurm.conf, which must have `settings`."""

    def __init__(self, folder, port):
        self.folder = folder
        self.user = getpass.getuser()
        self.settings = f"""AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStorageEnforce=associations,limits,qos
"""
        # Others cannot reach it: its administrator has no password.
        self.private = folder / "mariadb"
        self.private.mkdir(mode=0o700)
        self.socket = self.private / "socket"
        configuration = folder / "slurmdbd.conf"
        configuration.write_text(f"""AuthType=auth/none
DbdHost=localhost
DbdPort={port}
SlurmUser={self.user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
""")
        configuration.chmod(0o600)
        self.env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "MYSQL_UNIX_PORT": str(self.socket)}
        self.daemons = []

    def start(self, *command):
        self.daemons.append(subprocess.Popen(command, env=self.env, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def begin(self):
        data = self.private / "data"
        made = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={self.user}", "--skip-test-db",
                               "--auth-root-authentication-method=normal"], capture_output=True, text=True, check=False)
        check(made.returncode == 0, f"the database is made: {made.stdout}{made.stderr}")
        self.start("mariadbd", "--no-defaults", f"--datadir={data}", f"--user={self.user}", f"--socket={self.socket}", "--skip-networking",
                   f"--pid-file={self.private}/pid", f"--log-error={self.folder}/mariadb.log")
        wait_until(self.socket.exists, "MariaDB serves", 30)
        self.start("slurmdbd", "-D")
        wait_until(lambda: self.sacctmgr("list", "cluster").returncode == 0, lambda: f"slurmdbd serves: {self.log()}", 30)

    def log(self):
        return "".join(path.read_text() for path in (self.folder / "slurmdbd.log", self.folder / "mariadb.log") if path.exists())

    def sacctmgr(self, *words):
        return subprocess.run(["sacctmgr", "-i", *words], env=self.env, capture_output=True, text=True, check=False, timeout=50)

    def add(self, *words):
        done = self.sacctmgr("add", *words)
        check(done.returncode == 0, f"sacctmgr add {words}: {done.stdout}{done.stderr}{self.log()}")

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
