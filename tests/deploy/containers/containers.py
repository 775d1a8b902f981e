#!/usr/bin/env python3
"""Containers with devices of `xsched cdi generate`, and programs of this machine, on one server. run.sh says what it needs.

  containers.py --build FOLDER --image ARCHIVE --old-image ARCHIVE [--archive XSCHED.tar.xz] [TEST…]

The mounts of this process must be its own (unshare --mount): it puts files over those of /etc.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from harness import TESTS, check, test, wait_until  # noqa: E402

import cdi_edits  # noqa: E402

USER, SERVER = 60001, 60003
SUBORDINATE = 2_000_000  # the first of the user's subordinate ids
OF_NAMESPACE = 3_000_000  # the first id of a container that root runs in a user namespace
SECONDS = 30
# Not more descriptors and processes than this machine may allow; runc, because crun refuses hybrid control groups.
PODMAN = ("podman", "--runtime", "runc")
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
# What a container is to work with: nothing of the machine's but what the device brings.
CONFINED = ("--network", "none", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges")
PROGRAM = "/opt/test/xsched-latency-task"
FOREVER = ("--seconds", "300")
POCL = {"POCL_DEVICES": "pthread", "POCL_CACHE_DIR": "/tmp/pocl"}


def call(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=120, **more)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def over_etc(folder):
    """Puts files over those of /etc: a user with subordinate ids, and devices. Nobody else sees them."""
    lines = {"passwd": f"xsched-tester:x:{USER}:{USER}::{folder}/home:/bin/sh\n", "group": f"xsched-tester:x:{USER}:\n",
             "subuid": f"xsched-tester:{SUBORDINATE}:65536\n", "subgid": f"xsched-tester:{SUBORDINATE}:65536\n"}
    for name, line in lines.items():
        file, real = folder / name, pathlib.Path("/etc", name)
        real.touch()
        file.write_text(real.read_text(encoding="utf-8") + line, encoding="utf-8")
        call("mount", "--bind", file, real)
    os.makedirs("/etc/cdi", exist_ok=True)
    (folder / "cdi").mkdir()
    call("mount", "--bind", folder / "cdi", "/etc/cdi")


class Engine:
    """Podman, as root or as a user. Its containers end with it."""

    def __init__(self, place, *, user=None):
        self.place = place
        self.names = []
        self.prefix, self.environment = (), dict(os.environ)
        if user:
            self.home, self.runtime = place.folder / "home", place.folder / "runtime"
            for folder in (self.home, self.runtime):
                folder.mkdir(mode=0o700)
                os.chown(folder, user, user)
            self.prefix = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
            self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime)}

    def podman(self, *arguments):
        return call(*self.prefix, *PODMAN, *arguments, env=self.environment, cwd="/")

    def image(self, archive):
        tag = f"xsched-test-{pathlib.Path(archive).stem}"
        self.podman("import", "--quiet", archive, tag)
        return f"localhost/{tag}"

    def create(self, name, image, devices, *options, command=(), tools=None):
        """Returns the container's id."""
        self.names.append(name)
        command = command or (PROGRAM, *self.place.task, *FOREVER)
        environment = [f"--env={variable}={value}" for variable, value in POCL.items()]
        return self.podman("create", "--name", name, *LIMITS, *CONFINED, *environment, *(f"--device={device}" for device in devices),
                           f"--volume={tools or self.place.bin}:/opt/test:ro", *options, image, *command)

    def start(self, name):
        self.podman("start", name)
        return int(self.podman("inspect", "--format", "{{.State.Pid}}", name))

    def leave_namespaces(self):
        """Of a user: removes what has ids of the user's namespace, and ends the process that keeps the namespace."""
        keeper = self.runtime / "libpod" / "tmp" / "pause.pid"
        if keeper.exists():
            subprocess.run([*self.prefix, *PODMAN, "unshare", "rm", "-rf", self.home / ".local"], env=self.environment, cwd="/", check=False)
            os.kill(int(keeper.read_text()), signal.SIGKILL)

    def close(self, names=None):
        for name in names or list(self.names):
            subprocess.run([*self.prefix, *PODMAN, "rm", "--force", "--time", "0", name], env=self.environment, cwd="/",
                           capture_output=True, check=False)
            self.names.remove(name)


class Place:
    """A server for all users in a folder of its own, with devices that lead to it."""

    def __init__(self, options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="xsched-test-"))
        self.folder.chmod(0o755)
        self.bin = options.build / "bin"
        self.options = options
        self.run = self.folder / "run"
        self.run.mkdir()
        os.chown(self.run, SERVER, SERVER)
        self.socket = self.run / "xserver.sock"
        self.rules = self.folder / "tenants.toml"
        self.rules.write_text("", encoding="utf-8")
        self.environment = {**os.environ, "XSCHED_SOCKET": str(self.socket)}
        self.programs = []
        over_etc(self.folder)
        self.generate(self.bin / "xsched")
        self.root = Engine(self)
        self.user = Engine(self, user=USER)
        self.images = {}
        loops = call(self.bin / "xsched-latency-task", "--calibrate", env={**os.environ, **POCL, "POCL_CACHE_DIR": str(self.folder / "pocl")})
        self.task = ("--continuous", "--kernel-ms", "2", "--loops-per-ms", loops)
        self.start_server()

    def generate(self, xsched, *options):
        for kind in ("class", "share"):
            call(xsched, "cdi", "generate", "--kind", kind, *options, "--output", f"/etc/cdi/xsched-{kind}.json", env=self.environment)

    def image(self, engine, archive):
        """Imported once."""
        key = (engine, archive)
        if key not in self.images:
            self.images[key] = engine.image(archive)
        return self.images[key]

    def start_server(self):
        with open(self.folder / "log", "ab") as log:
            self.server = subprocess.Popen(["setpriv", f"--reuid={SERVER}", f"--regid={SERVER}", "--clear-groups", self.bin / "xserver",
                                            "--system", "--socket", self.socket, "--tenants", self.rules], stderr=log)
        wait_until(lambda: self.tool("policy", "show").returncode == 0, "the server answers")

    def stop_server(self):
        self.server.terminate()
        self.server.wait()

    def say_tenants(self, text):
        self.rules.write_text(text, encoding="utf-8")
        self.server.send_signal(signal.SIGHUP)

    def tool(self, *arguments):
        return subprocess.run([self.bin / "xsched", *arguments], env=self.environment, capture_output=True, text=True, check=False,
                              timeout=20)

    def queues(self):
        """By pid."""
        return {queue["pid"]: queue for queue in json.loads(self.tool("list", "--json").stdout or "[]")}

    def states(self, *pids):
        queues = self.queues()
        return tuple(queues[pid]["state"] if pid in queues else None for pid in pids)

    def until(self, pids, states, what):
        wait_until(lambda: self.states(*pids) == states, lambda: f"{what}: {self.tool('list').stdout}\n{self.log()}", SECONDS)

    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8")

    def program(self, priority):
        """A program of the user's, without a container."""
        self.programs.append(subprocess.Popen(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", self.bin / "xsched", "run", "--priority", str(priority),
             "--", self.bin / "xsched-latency-task", *self.task, *FOREVER],
            env={**self.environment, **POCL, "POCL_CACHE_DIR": str(self.user.home / "pocl")}, stdout=subprocess.DEVNULL))
        return self.programs[-1].pid

    def end_programs(self):
        for program in self.programs:
            program.kill()
            program.wait()
        self.programs.clear()

    def end_clients(self):
        self.end_programs()
        self.root.close()
        self.user.close()
        wait_until(lambda: not self.queues(), "no client is left", SECONDS)

    def close(self):
        self.end_programs()
        for engine in (self.root, self.user):
            engine.close()
        for (engine, _), image in self.images.items():
            subprocess.run([*engine.prefix, *PODMAN, "rmi", "--force", image], env=engine.environment, cwd="/", capture_output=True,
                           check=False)
        self.user.leave_namespaces()
        self.stop_server()
        shutil.rmtree(self.folder, ignore_errors=True)


def two_containers(place):
    """An urgent container and one of the class batch. Returns their pids."""
    image = place.image(place.root, place.options.image)
    place.root.create("xsched-test-urgent", image, ["xsched.org/class=urgent"])
    place.root.create("xsched-test-batch", image, ["xsched.org/class=batch"])
    pids = place.root.start("xsched-test-urgent"), place.root.start("xsched-test-batch")
    place.until(pids, ("run", "held"), "the urgent one runs, and the other is held for it")
    return pids


@test
def two_containers_and_a_program_of_the_machine_share_one_server(place):
    image = place.image(place.root, place.options.image)
    urgent_id = place.root.create("xsched-test-urgent", image, ["xsched.org/class=urgent"])
    place.root.create("xsched-test-batch", image, ["xsched.org/class=batch"], f"--uidmap=0:{OF_NAMESPACE}:65536",
                      f"--gidmap=0:{OF_NAMESPACE}:65536")
    place.say_tenants(f'[[tenant]]\nname = "serving"\ncontainers = ["{urgent_id[:12]}*"]\nmax_priority = 100\n')
    urgent, batch = place.root.start("xsched-test-urgent"), place.root.start("xsched-test-batch")
    program = place.program(0)
    place.until((urgent, program, batch), ("run", "held", "held"), "the urgent container holds the other two")

    queues = place.queues()
    known = {name: (queues[pid]["tenant"], queues[pid]["user"], queues[pid]["priority"], queues[pid]["counted_priority"])
             for name, pid in (("urgent", urgent), ("batch", batch), ("program", program))}
    check(known == {"urgent": ("serving", "root", 10, 10), "batch": (f"uid:{OF_NAMESPACE}", str(OF_NAMESPACE), -10, -10),
                    "program": (f"uid:{USER}", "xsched-tester", 0, 0)}, f"each is who it is: {known}")
    namespaces = {kind: len({os.readlink(f"/proc/{pid}/ns/{kind}") for pid in ("self", urgent, batch)}) for kind in ("pid", "net", "mnt")}
    check(namespaces == {"pid": 3, "net": 3, "mnt": 3}, f"each container has namespaces of its own: {namespaces}")
    mounts = pathlib.Path(f"/proc/{urgent}/mounts").read_text(encoding="utf-8")
    ours = [line.split() for line in mounts.splitlines() if line.split()[1].startswith(("/opt/xsched", "/run/xsched"))]
    check(ours and all("ro" in words[3].split(",") for words in ours), f"what is mounted is read-only: {ours}")

    place.root.close(["xsched-test-urgent"])
    place.until((program, batch), ("run", "held"), "the next one runs as soon as the urgent container is removed")


@test
def a_class_is_no_right(place):
    """Whoever can use the engine can ask for urgent. Without a rule it counts among the programs of the same tenant alone."""
    image = place.image(place.root, place.options.image)
    place.root.create("xsched-test-urgent", image, ["xsched.org/class=urgent"])
    urgent, program = place.root.start("xsched-test-urgent"), place.program(0)
    place.until((urgent, program), ("run", "run"), "it holds no program of another tenant")
    check(place.queues()[urgent]["counted_priority"] == 0, "and counts as what everybody has")


@test
def a_container_that_is_paused_or_killed_holds_nobody(place):
    urgent, batch = two_containers(place)
    place.root.podman("pause", "xsched-test-urgent")
    place.until((urgent, batch), ("silent", "run"), "the other runs while the urgent one is paused")
    place.root.podman("unpause", "xsched-test-urgent")
    place.until((urgent, batch), ("run", "held"), "and is held again")
    place.root.podman("kill", "--signal", "KILL", "xsched-test-urgent")
    place.until((urgent, batch), (None, "run"), "and runs when the urgent one is killed")


@test
def a_container_that_is_killed_for_memory_holds_nobody(place):
    image = place.image(place.root, place.options.image)
    # The kernel takes the program first, and not what uses the memory up.
    first = ("sh", "-c", 'echo 1000 >/proc/self/oom_score_adj; exec "$0" "$@"', PROGRAM, *place.task, *FOREVER)
    place.root.create("xsched-test-urgent", image, ["xsched.org/class=urgent"], "--memory=1g", "--memory-swap=1g", command=first)
    place.root.create("xsched-test-batch", image, ["xsched.org/class=batch"])
    urgent, batch = place.root.start("xsched-test-urgent"), place.root.start("xsched-test-batch")
    place.until((urgent, batch), ("run", "held"), "the urgent one runs")
    subprocess.run([*PODMAN, "exec", "xsched-test-urgent", "tail", "/dev/zero"], capture_output=True, check=False, timeout=60)
    place.until((urgent, batch), (None, "run"), "the other runs when the urgent one was killed")
    wait_until(lambda: place.root.podman("inspect", "--format", "{{.State.ExitCode}}", "xsched-test-urgent") == str(128 + signal.SIGKILL),
               "the kernel killed it", SECONDS)


@test
def containers_find_the_server_again_after_it_was_restarted(place):
    pids = two_containers(place)
    place.stop_server()
    time.sleep(1)
    place.start_server()
    place.until(pids, ("run", "held"), "both are scheduled by the new server")


def undisturbed(place, pids):
    """The queue of each, before and after 4 s. A program that a busy machine keeps from hearing of the server runs natively meanwhile, and then comes back
    with a new queue, which has its own account: such a time does not count. None: there was no other within a minute."""
    for _ in range(15):
        before = place.queues()
        time.sleep(4)
        after = place.queues()
        both = [(before.get(pid), after.get(pid)) for pid in pids]
        if all(old and new and old["queue"] == new["queue"] and old["service_ns"] > 0.5e9 for old, new in both):
            return both
    return None


@test
def containers_have_their_shares(place):
    image = place.image(place.root, place.options.image)
    check(place.tool("policy", "set", "EEVDF").returncode == 0, "the policy is set")
    pids = []
    for share in ("60", "30"):
        place.root.create(f"xsched-test-{share}", image, [f"xsched.org/share={share}"])
        pids.append(place.root.start(f"xsched-test-{share}"))
    both = undisturbed(place, pids)
    place.tool("policy", "set", "HPF")
    check(both is not None, "there were 4 s in which both worked, and found the server in time")
    had = [new["service_ns"] - old["service_ns"] for old, new in both]
    part = 100 * had[0] / sum(had)
    print(f"  shares of 60 and 30: {part:.1f} % and {100 - part:.1f} % of the time that both had, by the server's account")
    check(abs(part - 100 * 60 / 90) < 5, f"60 and 30 percent: {had}")
    hints = [[new[hint] for hint in ("utilization", "weight", "guarantee_us")] for _, new in both]
    check(hints == [[60, 60, 0], [30, 30, 0]], f"whatever policy of shares decides: {hints}")


@test
def a_container_may_have_a_class_and_a_share(place):
    image = place.image(place.root, place.options.image)
    place.root.create("xsched-test-both", image, ["xsched.org/class=batch", "xsched.org/share=40"])
    both = place.root.start("xsched-test-both")
    place.until((both,), ("run",), "it runs")
    queue = place.queues()[both]
    check((queue["priority"], queue["utilization"], queue["weight"]) == (-10, 40, 40), f"and has both: {queue}")


@test
def containers_of_a_user_without_root_are_the_user_s(place):
    image = place.image(place.user, place.options.image)
    place.user.create("xsched-test-urgent", image, ["xsched.org/class=urgent"])
    place.user.create("xsched-test-batch", image, ["xsched.org/class=batch"])
    urgent, batch = place.user.start("xsched-test-urgent"), place.user.start("xsched-test-batch")
    program = place.program(0)
    place.until((urgent, program, batch), ("run", "held", "held"), "the urgent one comes before the user's other programs")
    queues = place.queues()
    tenants = {queues[pid]["tenant"] for pid in (urgent, batch, program)}
    check(tenants == {f"uid:{USER}"}, f"all of them are the user's: {tenants}")
    check([queues[pid]["counted_priority"] for pid in (urgent, program, batch)] == [0, -10, -20], "and count for no more than the user may")
    place.user.close(["xsched-test-urgent"])
    place.until((program, batch), ("run", "held"), "the next one runs when the urgent container is removed")


class Runc:
    """A container of runc alone."""

    def __init__(self, place, name, root, device, *, user=None):
        self.name, self.place = name, place
        self.bundle = place.folder / name
        self.bundle.mkdir()
        self.prefix, self.environment = (), dict(os.environ)
        state = self.bundle / "state"
        if user:
            os.chown(self.bundle, user, user)
            self.prefix = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
            self.environment = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(place.user.runtime)}
        self.runc = (*self.prefix, "runc", "--root", state)
        call(*self.runc, "spec", "--bundle", self.bundle, *(("--rootless",) if user else ()), env=self.environment)
        path = self.bundle / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["root"] = {"path": str(root), "readonly": True}
        config["process"].update(terminal=False, args=[PROGRAM, *place.task, *FOREVER], rlimits=[],
                                 capabilities={kind: [] for kind in ("bounding", "effective", "permitted")})
        config["process"]["env"] += [f"{variable}={value}" for variable, value in POCL.items()]
        config["mounts"] += [{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
                             {"destination": "/run", "type": "tmpfs", "source": "tmpfs"},
                             {"destination": "/opt", "type": "tmpfs", "source": "tmpfs"},
                             {"destination": "/opt/test", "source": str(place.bin), "options": ["bind", "ro"]}]
        kind, name = device.split("=")
        specification = json.loads(pathlib.Path(f"/etc/cdi/xsched-{kind}.json").read_text(encoding="utf-8"))
        cdi_edits.add_device(config, specification, name)
        path.write_text(json.dumps(config), encoding="utf-8")
        self.output = open(self.bundle / "output", "wb")
        self.process = subprocess.Popen([*self.runc, "run", "--bundle", self.bundle, self.name], stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT, env=self.environment, cwd="/")
        wait_until(self._pid, lambda: f"{name} runs: {(self.bundle / 'output').read_text()}", SECONDS)
        self.pid = self._pid()

    def _pid(self):
        state = subprocess.run([*self.runc, "state", self.name], env=self.environment, capture_output=True, text=True, check=False)
        return state.returncode == 0 and json.loads(state.stdout)["status"] == "running" and json.loads(state.stdout)["pid"]

    def end(self):
        subprocess.run([*self.runc, "delete", "--force", self.name], env=self.environment, capture_output=True, check=False)
        self.process.wait()
        self.output.close()


def root_folder(place):
    root = place.folder / "root"
    if not root.exists():
        root.mkdir()
        call("tar", "-C", root, "-xf", place.options.image, "--exclude=./dev/*")
    return root


def runc_schedules(place, user):
    root = root_folder(place)
    name = "rootless" if user else "root"
    urgent = Runc(place, f"{name}-urgent", root, "class=urgent", user=user)
    try:
        batch = Runc(place, f"{name}-batch", root, "class=batch", user=user)
        try:
            place.until((urgent.pid, batch.pid), ("run", "held"), "the urgent one runs, and the other is held")
            tenants = {place.queues()[pid]["tenant"] for pid in (urgent.pid, batch.pid)}
            check(tenants == {f"uid:{user or 0}"}, f"they are of the user who runs runc: {tenants}")
            if not user:
                call(*urgent.runc, "pause", urgent.name)
                place.until((urgent.pid, batch.pid), ("silent", "run"), "the other runs while the urgent one is paused")
                call(*urgent.runc, "resume", urgent.name)
                place.until((urgent.pid, batch.pid), ("run", "held"), "and is held again")
            urgent.end()
            place.until((batch.pid,), ("run",), "the other runs when the urgent one has gone")
        finally:
            batch.end()
    finally:
        urgent.end()


@test
def runc_alone_runs_the_edits_as_root(place):
    runc_schedules(place, user=None)


@test
def runc_alone_runs_the_edits_without_root(place):
    runc_schedules(place, user=USER)


def run_to_the_end(place, image, tools):
    """A program of this image, with the device class=batch: its exit status, its output and whether it was scheduled."""
    place.root.create("xsched-test-old", image, ["xsched.org/class=batch"], command=(PROGRAM, *place.task, "--seconds", "4"), tools=tools)
    pid = place.root.start("xsched-test-old")
    scheduled = False
    while place.root.podman("inspect", "--format", "{{.State.Running}}", "xsched-test-old") == "true":
        scheduled |= pid in place.queues()
        time.sleep(0.1)
    status = int(place.root.podman("inspect", "--format", "{{.State.ExitCode}}", "xsched-test-old"))
    output = subprocess.run([*PODMAN, "logs", "xsched-test-old"], capture_output=True, text=True, check=False)
    place.root.close(["xsched-test-old"])
    return status, output.stdout + output.stderr, scheduled


@test
def an_image_with_an_old_libc_is_scheduled_with_the_libraries_of_the_archive(place):
    if not place.options.archive:
        print("  not run: there is no archive (make archive)")
        return
    unpacked = place.folder / "archive"
    unpacked.mkdir()
    call("tar", "-C", unpacked, "-xf", place.options.archive, "--strip-components=1")
    tools = next(unpacked.rglob("xsched-latency-task")).parent
    image = place.image(place.root, place.options.old_image)

    place.generate(unpacked / "bin" / "xsched")
    status, output, scheduled = run_to_the_end(place, image, tools)
    check(status == 0 and not scheduled, f"with a layer that its OpenCL loader does not know, it runs natively: {status}, {output}")
    place.generate(unpacked / "bin" / "xsched", "--route", "preload")
    status, output, scheduled = run_to_the_end(place, image, tools)
    check(status == 0 and scheduled, f"with libraries that need glibc 2.17, it is scheduled: {status}, {output}")
    place.generate(place.bin / "xsched", "--route", "preload")
    status, output, _ = run_to_the_end(place, image, tools)
    check(status != 0 and "GLIBC_2.34" in output, f"with libraries that need a newer glibc it does not start, as is documented: {output}")
    place.generate(place.bin / "xsched")


@test
def a_checkpoint_holds_nobody(place):
    works = subprocess.run(["criu", "check"], capture_output=True, check=False) if shutil.which("criu") else None
    if works is None or works.returncode != 0:
        print("  not run: criu is not here, or does not work with this kernel")
        return
    urgent, batch = two_containers(place)
    done = subprocess.run([*PODMAN, "container", "checkpoint", "xsched-test-urgent"], capture_output=True, text=True, check=False)
    print(f"  the checkpoint {'was made' if done.returncode == 0 else 'was refused: ' + done.stderr.strip()}")
    if done.returncode == 0:
        place.until((urgent, batch), (None, "run"), "the other runs")
    else:
        place.until((urgent, batch), ("run", "held"), "nothing has changed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--build", "--image", "--old-image"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--archive", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    for name in list(os.environ):
        if name.startswith("XSCHED_") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
            del os.environ[name]
    place = Place(options)
    try:
        for name in options.tests or TESTS:
            place.say_tenants("")
            TESTS[name](place)
            place.end_clients()
            print(f"passed: {name}", flush=True)
    finally:
        place.close()


if __name__ == "__main__":
    main()
