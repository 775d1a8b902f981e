#!/usr/bin/env python3
"""`xsched run --shared-context`: NVIDIA's Multi-Process Service is started for the first program and ended after the last one. The service's
control program is a stand-in."""
import os
import pathlib
import signal
import subprocess
import time

from harness import check, main, test, wait_until

CONTROL = """#!/bin/sh
folder=$CUDA_MPS_PIPE_DIRECTORY
if [ "$1" = -d ]; then
  [ -z "$STANDIN_MPS_FAILS" ] || exit 1
  echo start >> "$folder/events"
  : > "$folder/control"
  exit 0
fi
[ -e "$folder/control" ] || { echo "Cannot find MPS control daemon process"; exit 1; }
while read -r command _; do
  case $command in
    get_server_list) [ ! -s "$folder/clients" ] || echo 77 ;;
    get_client_list) cat "$folder/clients" ;;
    quit) echo quit >> "$folder/events"; rm "$folder/control" ;;
  esac
done
exit 0
"""


class Program:
    """It lives until it is ended, and has a context when this returns."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        check(self.process.stdout.readline() == "started\n", "the program starts")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Service:
    """The stand-in's folder, and programs that share a context by it."""

    def __init__(self, place):
        self.place = place
        tools = pathlib.Path(place.folder) / "tools"
        tools.mkdir()
        control = tools / "nvidia-cuda-mps-control"
        control.write_text(CONTROL)
        control.chmod(0o755)
        self.folder = pathlib.Path(place.folder) / "xsched" / "shared-context-cuda"
        # The platform is here if its driver can be loaded.
        self.env = {"XDG_RUNTIME_DIR": place.folder, "PATH": f"{tools}:{os.environ['PATH']}",
                    "LD_LIBRARY_PATH": str(place.lib.parent / "standin")}

    def command(self, script):
        return [str(self.place.bin / "xsched"), "run", "--no-server", "--shared-context", "--", "/bin/sh", "-c", script]

    def start(self):
        program = Program(self.command("echo started; exec sleep 60"), {**os.environ, **self.place.env, **self.env})
        self.place.clients.append(program)
        return program

    def run(self, script, **env):
        return subprocess.run(self.command(script), env={**os.environ, **self.place.env, **self.env, **env}, capture_output=True, text=True,
                              timeout=30)

    def events(self):
        file = self.folder / "events"
        return file.read_text().split() if file.exists() else []

    def wait_for(self, *events):
        wait_until(lambda: self.events() == list(events), lambda: f"{events}: {self.events()}", 20)

    def keepers(self):
        """The processes that have the keeper's file open."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if any(os.readlink(fd) == str(self.folder / "keeper") for fd in (process / "fd").iterdir()):
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def wait_for_end(self, *events):
        """Until there were these events in all, and nobody keeps the service."""
        self.wait_for(*events)
        wait_until(lambda: not self.keepers(), lambda: f"nobody keeps the service: {self.keepers()}", 20)


@test
def the_service_lives_from_the_first_program_to_the_last_and_once_more(place):
    service = Service(place)
    first, second = service.start(), service.start()
    first.end()
    time.sleep(3)
    check(service.events() == ["start"], f"one service for both, which goes on for the second: {service.events()}")
    check(len(service.keepers()) == 1, f"one process keeps it: {service.keepers()}")
    second.end()
    service.wait_for_end("start", "quit")
    third = service.start()
    check(service.events() == ["start", "quit", "start"], f"a new service: {service.events()}")
    third.end()
    service.wait_for_end("start", "quit", "start", "quit")


@test
def the_program_finds_it_and_keeps_its_status(place):
    service = Service(place)
    done = service.run('echo "$CUDA_MPS_PIPE_DIRECTORY"; exit 7')
    check((done.returncode, done.stdout) == (7, f"{service.folder}\n"), f"{done}")
    check((service.folder.stat().st_mode & 0o777, service.folder.parent.stat().st_mode & 0o777) == (0o700, 0o700), "it is the user's alone")
    service.wait_for_end("start", "quit")


@test
def programs_that_a_program_has_left_behind_are_waited_for(place):
    service = Service(place)
    left = int(service.run("sleep 60 > /dev/null 2>&1 & echo $!").stdout)
    time.sleep(3)
    check(service.events() == ["start"], f"the one that was left uses it: {service.events()}")
    # This one has closed what it got from its parent: only the service knows it.
    (service.folder / "clients").write_text("4711\n")
    os.kill(left, signal.SIGKILL)
    time.sleep(3)
    check(service.events() == ["start"], f"the service has a client: {service.events()}")
    (service.folder / "clients").unlink()
    service.wait_for_end("start", "quit")


@test
def a_keeper_that_is_killed_is_followed_by_the_next_programs(place):
    service = Service(place)
    first = service.start()
    keeper, = service.keepers()
    os.kill(keeper, signal.SIGKILL)
    service.wait_for_end("start")
    second = service.start()
    wait_until(lambda: len(service.keepers()) == 1, "there is one again")
    check(service.events() == ["start"], f"it found the service: {service.events()}")
    first.end()
    second.end()
    service.wait_for_end("start", "quit")


@test
def a_service_that_dies_is_started_again(place):
    service = Service(place)
    program = service.start()
    (service.folder / "control").unlink()
    service.wait_for("start", "start")
    program.end()
    service.wait_for_end("start", "start", "quit")


@test
def without_a_service_the_program_runs_with_a_context_of_its_own(place):
    service = Service(place)
    for reason, env in (("the service does not start", {"STANDIN_MPS_FAILS": "1"}), ("is not in PATH", {"PATH": "/usr/bin:/bin"})):
        done = service.run('echo "<$CUDA_MPS_PIPE_DIRECTORY>"', **env)
        check((done.returncode, done.stdout) == (0, "<>\n"), f"{done}")
        check("the program has a CUDA context of its own: " in done.stderr and reason in done.stderr, done.stderr)
        check(done.stderr.count("\n") == 1, f"one line: {done.stderr}")
    service.wait_for_end()


@test
def a_service_of_the_users_own_is_used_as_it_is(place):
    service = Service(place)
    done = service.run('echo "$CUDA_MPS_PIPE_DIRECTORY"', CUDA_MPS_PIPE_DIRECTORY="/theirs")
    check((done.returncode, done.stdout, done.stderr) == (0, "/theirs\n", ""), f"{done}")
    check(not service.folder.exists(), "nothing is started")


if __name__ == "__main__":
    main(__doc__)
