#!/usr/bin/env python3
"""Jobs of a real Slurm under XSched: options, defaults, caps, shards, priorities, and what is left when they end.

A controller and two nodes (n1, which has shards of a GPU, and n2) run in a temporary folder and end with the script.

  slurm_jobs.py --bin FOLDER --lib FOLDER [--short | TEST…]     --short: without what measures latency
"""
import argparse
import contextlib
import getpass
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from accounting import Accounting, is_installed  # noqa: E402
from harness import TESTS, Place, check, skip, test, wait_until  # noqa: E402

NOBODY = 65534
SKIPPED = 77  # what skip() ends with
# Slurm then makes a control group for each job, by which XSched knows it.
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
HAS_CGROUPS = os.geteuid() == 0 and (FREEZER / "cgroup.procs").exists() and os.access(FREEZER, os.W_OK)
MEASURES = ["an_urgent_job_is_served_sooner_than_natively"]
RULES = ("shards=4", "partition=urgent:priority=10,max_priority=50", "partition=batch:max_priority=0", "account=lab:weight=300", "qos=high:priority=20,max_priority=30")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A controller and two nodes. `place` has XSched's server, if a test starts one. `accounts`: with a database of accounts and QOS, and
    without control groups, which would have the names of another cluster's."""

    def __init__(self, place, folder, accounts=False):
        self.place = place
        self.folder = folder
        self.accounting = Accounting(folder, free_port()) if accounts else None
        os.chmod(self.folder, 0o755)
        self.bin = place.bin
        self.daemons = []
        self.loops = ""
        self.write_files()
        self.env = {**os.environ, **place.env, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin"}
        for name in [name for name in self.env if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del self.env[name]

    def begin(self):
        if self.accounting:
            self.accounting.begin()
            self.add_accounts()
        self.start("slurmctld", "-D", "-c")
        for node in ("n1", "n2"):
            self.start("slurmd", "-D", "-N", node)
        wait_until(lambda: self.run("sinfo", "-h", "-N", "-p", "gpu", "-o", "%T").stdout.split() == ["idle", "idle"],
                   lambda: "the nodes are idle: " + self.run("sinfo").stdout + self.logs(), 30)

    def add_accounts(self):
        """The user may have the QOS normal and high in the account site, and only normal in lab."""
        self.accounting.add("cluster", "xsched")
        self.accounting.add("qos", "high,other")
        for account, qos in (("site", "normal,high"), ("lab", "normal")):
            self.accounting.add("account", account)
            self.accounting.add("user", getpass.getuser(), f"account={account}", "defaultaccount=site", f"qos={qos}")

    def write_files(self):
        user = getpass.getuser()
        folder = self.folder
        self.xsched = folder / "xsched"
        self.identities = folder / "identities"
        self.identities.touch()
        self.identities.chmod(0o666)
        self.xsched.write_text(f"#!/bin/sh\ngrep -h '^[UG]id' /proc/self/status >>{self.identities}\nexec {self.bin}/xsched \"$@\"\n")
        self.xsched.chmod(0o755)
        (folder / "slurm.conf").write_text(f"""ClusterName=xsched
SlurmctldHost=localhost
SlurmctldPort={free_port()}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/{"cgroup" if HAS_CGROUPS and not self.accounting else "linuxproc"}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0
GresTypes=gpu,shard
PlugStackConfig={folder}/plugstack.conf
MpiDefault=none
KillWait=2
ReturnToService=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={free_port()} CPUs=8 Gres=gpu:1,shard:4
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={free_port()} CPUs=8
PartitionName=gpu Nodes=n1,n2 Default=YES OverSubscribe=FORCE
PartitionName=urgent Nodes=n1,n2
PartitionName=batch Nodes=n1,n2
{self.accounting.settings if self.accounting else ""}""")
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n")
        (folder / "gres.conf").write_text("NodeName=n1 Name=gpu File=/dev/null\nNodeName=n1 Name=shard Count=4\n")
        plugin = self.place.lib / "slurm" / "xsched.so"
        check(plugin.exists(), f"{plugin} is there: libslurm-dev was installed when it was built")
        (folder / "plugstack.conf").write_text(f"optional {plugin} xsched={self.xsched} {' '.join(RULES)}\n")
        for name in ("state", "n1", "n2"):
            (folder / name).mkdir()

    def start(self, *command):
        self.daemons.append(subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def logs(self):
        return "\n".join(f"== {log}\n{log.read_text()[-3000:]}" for log in sorted(self.folder.glob("*.log")))

    def run(self, *command, prefix=(), **env):
        return subprocess.run([*prefix, *map(str, command)], env={**self.env, **env}, cwd=self.folder, capture_output=True, text=True, timeout=50)

    def ok(self, *command, **env):
        done = self.run(*command, **env)
        check(done.returncode == 0, f"{command} ends well: {done.returncode} {done.stdout} {done.stderr}\n{self.logs()}")
        return done

    def variables(self, *command, **env):
        """What the tasks of this command see of XSched's variables, and what the user is told."""
        done = self.ok(*command, "env", **env)
        # srun and salloc also say that they wait for resources.
        said = [line for line in done.stderr.splitlines(True) if not re.match(r"(srun|salloc): (job \d+|Pending|Granted|Relinquishing)", line)]
        return scheduled(done.stdout), "".join(said)

    def sbatch(self, *options, script):
        """The number of the job, and the file with its output."""
        job = self.ok("sbatch", "--parsable", f"--output={self.folder}/%j.out", *options, f"--wrap={script}").stdout.strip()
        return job, self.folder / f"{job}.out"

    def wait_for(self, job):
        wait_until(lambda: not self.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip(), lambda: f"job {job} has ended\n{self.logs()}", 30)

    def state(self, job):
        return self.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip()

    def close(self):
        self.run("scancel", "--quiet", "--full", "-s", "KILL", "--me")
        for job in self.run("squeue", "-h", "-o", "%A").stdout.split():
            self.wait_for(job)
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if self.accounting:
            self.accounting.close()
            return
        for group in [*FREEZER.glob("slurm_n[12]/uid_*"), *FREEZER.glob("slurm_n[12]")]:
            with contextlib.suppress(OSError):
                group.rmdir()


def scheduled(text):
    found = re.findall(r"^(XSCHED_(?:AUTO_XQUEUE\w*|JOB)|OPENCL_LAYERS)=(.*)$", text, re.MULTILINE)
    return {name.removeprefix("XSCHED_").removeprefix("AUTO_XQUEUE_"): value for name, value in found}


def by_priority(cluster):
    return {queue["priority"]: queue for queue in cluster.place.queues()}


def task(cluster):
    """A program whose kernels are as long beside others as they are alone, of 2 ms."""
    program = str(cluster.bin / "xsched-latency-task")
    if not cluster.loops:
        tries = [subprocess.run([program, "--calibrate"], capture_output=True, text=True, check=True).stdout.strip() for _ in range(5)]
        cluster.loops = max(tries, key=float)  # at the device's highest speed
    return program, "--loops-per-ms", cluster.loops


def work(cluster, seconds=60):
    """A shell command that keeps the device busy."""
    return f"exec {' '.join(task(cluster))} --continuous --seconds {seconds}"


def end(cluster, *jobs):
    cluster.ok("scancel", *jobs)
    for job in jobs:
        cluster.wait_for(job)


def leaves_nothing(cluster):
    wait_until(lambda: cluster.place.queues() == [], lambda: f"no queue is left: {cluster.place.queues()}")


@test
def the_options_are_in_the_help(cluster):
    for command in ("srun", "sbatch", "salloc"):
        text = cluster.ok(command, "--help").stdout
        for option in ("--xsched-priority=N", "--xsched-utilization=P", "--xsched-weight=N"):
            check(option in text, f"{option} is in {command} --help")


@test
def a_wrong_option_is_refused_before_anything_starts(cluster):
    for command in (("srun", "true"), ("sbatch", "--wrap=true"), ("salloc", "true")):
        done = cluster.run(command[0], "--xsched-priority=high", command[1])
        check(done.returncode != 0 and "'high' is not a number from -256 to 255" in done.stderr, f"{command}: {done}")


@test
def a_job_that_does_not_ask_for_it_runs_natively(cluster):
    seen = cluster.variables("srun")
    check(seen == ({}, ""), f"no variable, no word: {seen}")


@test
def options_reach_the_tasks_of_srun_sbatch_and_salloc(cluster):
    seen, said = cluster.variables("srun", "-n2", "--xsched-priority=5", "--xsched-weight=200", "--xsched-utilization=40")
    check((seen["PRIORITY"], seen["WEIGHT"], seen["UTILIZATION"], said) == ("5", "200", "40", ""), f"srun: {seen} {said}")
    check(seen["OPENCL_LAYERS"].endswith("libshimopencl.so") and re.fullmatch(r"slurm-\d+\.0", seen["JOB"]), f"as xsched run: {seen}")
    seen, _ = cluster.variables("salloc", "--xsched-priority=6", "srun")
    check(seen["PRIORITY"] == "6", f"salloc: {seen}")
    job, output = cluster.sbatch("--xsched-priority=7", script="env; echo; echo step; srun env; echo other; srun --xsched-priority=8 env")
    cluster.wait_for(job)
    script, step = output.read_text().split("\nstep\n")
    step, other = step.split("\nother\n")
    check([scheduled(text)["PRIORITY"] for text in (script, step, other)] == ["7", "7", "8"], f"sbatch: {output.read_text()}")
    check(scheduled(step)["JOB"] == f"slurm-{job}.0" and scheduled(other)["JOB"] == f"slurm-{job}.1", "each step is a job of XSched's")


@test
def partitions_and_accounts_have_defaults_and_caps(cluster):
    seen, said = cluster.variables("srun", "-p", "urgent")
    check((seen["PRIORITY"], said) == ("10", ""), f"the partition's default: {seen} {said}")
    seen, said = cluster.variables("srun", "-N2", "-p", "urgent", "-A", "lab", "--xsched-priority=99")
    check((seen["PRIORITY"], seen["WEIGHT"]) == ("50", "300"), f"the partition's cap, and the account's default: {seen}")
    line = "xsched: priority 99 is lowered to 50, the highest for this job (partition urgent, account lab, QOS -)"
    check(said.count(line) == 1, f"it is said once: {said}")
    seen, _ = cluster.variables("srun", "-p", "batch", XSCHED_AUTO_XQUEUE_PRIORITY="9")
    check(seen["PRIORITY"] == "0", f"a variable of the user is capped, too: {seen}")
    job, output = cluster.sbatch("-p", "batch", "--xsched-priority=9", script="env")
    cluster.wait_for(job)
    check(scheduled(output.read_text())["PRIORITY"] == "0" and "lowered to 0" in output.read_text(), f"in a script's output: {output.read_text()}")


@contextlib.contextmanager
def cluster_with_accounts(place):
    if not is_installed():
        skip("slurmdbd or mariadb-server is not installed")
    folder = pathlib.Path(place.folder) / "accounts"
    folder.mkdir()
    cluster = Cluster(place, folder, accounts=True)
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.close()


@test
def a_qos_has_defaults_and_caps(of_others):
    with cluster_with_accounts(of_others.place) as cluster:
        seen, said = cluster.variables("srun", "--qos=high")
        check((seen["PRIORITY"], said) == ("20", ""), f"the QOS's default: {seen} {said}")
        seen, said = cluster.variables("srun", "-p", "urgent", "--qos=high", "--xsched-priority=99")
        line = "xsched: priority 99 is lowered to 30, the highest for this job (partition urgent, account site, QOS high)\n"
        check((seen["PRIORITY"], said) == ("30", line), f"its cap, after that of the partition: {seen} {said}")
        seen, said = cluster.variables("srun", "-p", "urgent")
        check((seen["PRIORITY"], said) == ("10", ""), f"a job of the QOS that is the default: {seen} {said}")
        seen, _ = cluster.variables("srun", "-A", "lab", "--xsched-priority=40")
        check((seen["PRIORITY"], seen["WEIGHT"]) == ("40", "300"), f"a job of another QOS and account: {seen}")
        job, output = cluster.sbatch("--qos=high", "--xsched-priority=99", script="env; echo; echo step; srun env")
        cluster.wait_for(job)
        parts = output.read_text().split("\nstep\n")
        check([scheduled(text)["PRIORITY"] for text in parts] == ["30", "30"], f"sbatch and its step: {output.read_text()}")
        for options in (("--qos=other",), ("-A", "lab", "--qos=high")):
            done = cluster.run("srun", *options, "true")
            check(done.returncode != 0 and "Invalid qos" in done.stderr, f"Slurm decides who has a QOS: {options} {done}")


@test
def shards_are_the_share_of_a_job(cluster):
    seen, _ = cluster.variables("srun", "--gres=shard:1")
    check((seen["UTILIZATION"], seen["WEIGHT"]) == ("25", "2500"), f"one of four: {seen}")
    job, output = cluster.sbatch("--gres=shard:3", "-n2", script="env; echo; echo step; srun -n2 env")
    cluster.wait_for(job)
    script, step = output.read_text().split("\nstep\n")
    check(scheduled(script)["UTILIZATION"] == "75" and scheduled(step)["UTILIZATION"] == "38", f"tasks divide it: {output.read_text()}")


@test
def an_urgent_job_holds_another_and_leaves_nothing(cluster):
    cluster.place.start_server()
    shared_memory = set(os.listdir("/dev/shm"))
    low, output = cluster.sbatch("-p", "batch", "-w", "n1", "--xsched-priority=-5", script=work(cluster))
    wait_until(lambda: by_priority(cluster).get(-5, {}).get("state") == "run",
               lambda: f"the job is on the device: {cluster.run('squeue').stdout} {cluster.place.queues()} {output.read_text()}", 20)
    urgent, output = cluster.sbatch("-p", "urgent", "-w", "n2", script=work(cluster))
    wait_until(lambda: by_priority(cluster).get(-5, {}).get("state") == "held" and 10 in by_priority(cluster),
               lambda: f"it is held: {cluster.place.queues()} {output.read_text()}", 20)
    print(cluster.place.tool("list").stdout, end="")
    cluster.ok("scontrol", "suspend", urgent)
    wait_until(lambda: by_priority(cluster)[-5]["state"] == "run", "a suspended job holds nobody", 5)
    cluster.ok("scontrol", "resume", urgent)
    wait_until(lambda: by_priority(cluster)[-5]["state"] == "held", "and is resumed", 5)
    end(cluster, urgent)
    wait_until(lambda: by_priority(cluster)[-5]["state"] == "run", "a canceled one has gone", 5)
    end(cluster, low)
    leaves_nothing(cluster)
    check(set(os.listdir("/dev/shm")) <= shared_memory, "and no shared memory")


def median_latency(cluster, name, *options):
    """Of tasks of five kernels of 2 ms, in ms, of a job beside the others."""
    result = cluster.folder / f"{name}.json"
    cluster.ok("srun", "-w", "n2", *options, *task(cluster), "--rate", "10", "--seconds", "3", "--json", result)
    latencies = [float(number) for number in re.search(r'"latency_ms":\s*\[([^\]]*)', result.read_text())[1].split(",")]
    return statistics.median(latencies)


@test
def an_urgent_job_is_served_sooner_than_natively(cluster):
    cluster.place.start_server()
    job, _ = cluster.sbatch("-w", "n1", script=work(cluster))
    wait_until(lambda: cluster.state(job) == "RUNNING", "the job runs")
    time.sleep(1)
    natively = median_latency(cluster, "native")
    end(cluster, job)
    job, _ = cluster.sbatch("-w", "n1", "--xsched-priority=0", script=work(cluster))
    wait_until(lambda: by_priority(cluster).get(0, {}).get("state") == "run", "the job is on the device", 20)
    with_xsched = median_latency(cluster, "scheduled", "-p", "urgent")
    end(cluster, job)
    print(f"an urgent job beside another: median latency {natively:.1f} ms natively, {with_xsched:.1f} ms with --xsched-priority")
    check(with_xsched < natively, f"{with_xsched:.1f} ms with XSched, {natively:.1f} ms natively")
    leaves_nothing(cluster)


@test
def each_task_of_an_array_is_a_job(cluster):
    cluster.place.start_server()
    job = cluster.ok("sbatch", "--parsable", "--array=0-2", f"--output={cluster.folder}/a%a.out", "--xsched-priority=3",
                     f"--wrap=env; {work(cluster)}").stdout.strip()
    wait_until(lambda: [queue["priority"] for queue in cluster.place.queues()] == [3, 3, 3], "all of them work", 20)
    names = {scheduled((cluster.folder / f"a{i}.out").read_text())["JOB"] for i in range(3)}
    check(len(names) == 3, f"with names of their own: {names}")
    end(cluster, job)
    leaves_nothing(cluster)


@test
def a_requeued_job_is_scheduled_again(cluster):
    cluster.place.start_server()
    job, _ = cluster.sbatch("--requeue", "--xsched-priority=4", script=work(cluster))
    wait_until(lambda: 4 in by_priority(cluster), "the job works", 20)
    first = by_priority(cluster)[4]["pid"]
    cluster.ok("scontrol", "requeue", job)
    wait_until(lambda: cluster.state(job) == "PENDING", "it is queued again", 20)
    leaves_nothing(cluster)
    time.sleep(2)  # in the same second, Slurm's node would refuse it: it takes it for the job that was killed
    cluster.ok("scontrol", "update", f"JobId={job}", "StartTime=now")
    wait_until(lambda: by_priority(cluster).get(4, {}).get("pid") not in (None, first),
               lambda: f"and works as before: {cluster.run('scontrol', 'show', 'job', job).stdout}\n{cluster.logs()}", 40)
    end(cluster, job)
    leaves_nothing(cluster)


@test
def a_job_is_of_the_tenant_that_the_servers_file_says(cluster):
    if not HAS_CGROUPS:
        skip("no control groups here")
    rules = cluster.folder / "tenants.toml"
    rules.write_text('[[tenant]]\nname = "jobs"\njobs = ["*"]\nmax_priority = 3\n')
    cluster.place.start_server("--system", "--tenants", str(rules))
    job, _ = cluster.sbatch("--xsched-priority=4", script=work(cluster))
    wait_until(lambda: [queue["tenant"] for queue in cluster.place.queues()] == ["jobs"], lambda: f"it is: {cluster.place.queues()}", 20)
    end(cluster, job)
    leaves_nothing(cluster)
    rules.write_text(f'[[tenant]]\nname = "next"\njobs = ["{int(job) + 1}"]\n')
    cluster.place.server.send_signal(signal.SIGHUP)
    job, _ = cluster.sbatch("--xsched-priority=4", script=work(cluster))
    wait_until(lambda: [queue["tenant"] for queue in cluster.place.queues()] == ["next"], lambda: f"by its number: {cluster.place.queues()}", 20)

    rules.write_text('[[tenant]]\nname = "jobs"\neach = "job"\n')
    cluster.place.server.send_signal(signal.SIGHUP)
    wait_until(lambda: [queue["tenant"] for queue in cluster.place.queues()] == [f"jobs/{job}"], lambda: f"one of its own: {cluster.place.queues()}", 20)
    end(cluster, job)
    wait_until(lambda: "jobs/" not in cluster.place.tool("tenants").stdout, "which ends with the job")


@test
def without_a_server_a_job_runs_natively(cluster):
    begin = time.monotonic()
    done = cluster.ok("srun", "--xsched-priority=5", *task(cluster), "--rate", "10", "--seconds", "0.5", "--json", "/dev/null")
    said = [line for line in done.stderr.splitlines() if line.startswith("xsched:")]
    check(len(said) == 1 and "running unscheduled until a server is there" in said[0], f"with one line: {done.stderr}")
    check(time.monotonic() - begin < 10, "and soon")


@test
def on_a_node_without_xsched_a_job_runs_natively(cluster):
    away = cluster.xsched.with_suffix(".away")
    cluster.xsched.rename(away)
    try:
        seen, said = cluster.variables("srun", "--xsched-priority=5")
        check(seen == {}, f"natively: {seen}")
        check(re.fullmatch(rf"xsched: the job runs unscheduled on \S+: {cluster.xsched}: No such file or directory\n", said), f"and it is said: {said}")
        check(cluster.variables("srun", "-p", "urgent") == ({}, ""), "who did not ask for it is not told")
        wait_until(lambda: "the job runs unscheduled on" in (cluster.folder / "n1.log").read_text(), "but the node's log")
    finally:
        away.rename(cluster.xsched)


@test
def what_is_asked_for_another_user_has_no_privileges(cluster):
    if os.geteuid() != 0:
        skip("only root can start jobs of another user")
    cluster.identities.write_text("")
    user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    done = cluster.run("srun", "--chdir=/", "--xsched-priority=5", "env", prefix=user)
    check(done.returncode == 0, f"the job runs: {done.stderr}")
    if "unscheduled" in done.stderr:
        skip("other users cannot reach the build's folder")
    check(scheduled(done.stdout)["PRIORITY"] == "5", f"scheduled: {done}")
    ids = cluster.identities.read_text().split()
    check(ids and {word for word in ids if word.isdigit()} == {str(NOBODY)}, f"as this user and nobody else: {ids}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--lib", type=pathlib.Path, required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    for program in ("slurmctld", "slurmd", "srun"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    for name in list(os.environ):
        if name.startswith("XSCHED_") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
            del os.environ[name]
    place = Place(options)
    cluster = Cluster(place, pathlib.Path(place.folder))
    try:
        cluster.begin()
        for name in options.tests or [name for name in TESTS if not (options.short and name in MEASURES)]:
            begin = time.monotonic()
            try:
                TESTS[name](cluster)
                print(f"passed: {name} ({time.monotonic() - begin:.1f} s)", flush=True)
            except SystemExit as end_of_test:
                if end_of_test.code != SKIPPED:
                    raise
            if place.server:
                place.server.terminate()
                place.server.wait()
                place.server = None
    finally:
        cluster.close()
        place.close()


main()
