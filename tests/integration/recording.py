#!/usr/bin/env python3
"""Real programs are recorded by xsched record, and simulated from the recording."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import perfetto_trace
from harness import Client, check, held_client, main, test, under, wait_until

HELD_FOR = b"held for queue "  # in the names of two events in a timeline: the queue's hold, and the decision
TASK = 30  # commands of soft_client's task, each 1 ms long, every 100 ms


class Recording:
    """xsched record, while it runs, and its file."""

    def __init__(self, place, *options):
        self.place = place
        self.path = pathlib.Path(place.folder) / "recording.xrec"
        self.process = subprocess.Popen([str(place.bin / "xsched"), "record", "--output", str(self.path), *options],
                                        env={**os.environ, **place.env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: self.path.exists() and '"queue"' in self.path.read_text(), "it records")

    def end(self, how=None):
        if how is not None:
            self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors

    def lines(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def of(self, kind):
        return [line[kind] for line in self.lines() if kind in line]

    def simulated(self, *options):
        outcome = self.place.tool("simulate", "--json", *options, str(self.path))
        check(outcome.returncode == 0, f"it can be simulated: {outcome.stderr}")
        rows = {row["policy"]: {queue["queue"]: queue for queue in row["queues"]} for row in json.loads(outcome.stdout)}
        return rows, outcome.stderr


def at_work(place, priority, mode="task", **more):
    client = Client(place, priority, mode, **more)
    wait_until(lambda: client.progress() > 2 * TASK, "it works")
    return client


@test
def two_programs_are_recorded_and_simulated_with_the_same_tasks_and_throughput(place):
    place.start_server()
    at_work(place, 5)
    at_work(place, 0)
    recording = Recording(place, "--seconds", "3")
    status, errors = recording.end()
    check(status == 0 and errors.startswith("2 queues, "), f"it says what it has recorded: {status}, {errors}")
    check(recording.lines()[-1]["end"] == {"why": "time"}, "the file has an end")
    check(not recording.of("lost"), "nothing is lost")
    check(sorted(queue["hints"]["priority"] for queue in recording.of("queue")) == [0, 5], "two queues, with their hints")
    whole = [burst for burst in recording.of("burst") if burst["commands"] == TASK]
    check(len(whole) >= 10, f"tasks are bursts: {len(whole)} of about 60")
    lengths = sorted(burst["device_ns"] / burst["commands"] / 1e6 for burst in whole)
    length = lengths[len(lengths) // 2]
    check(length >= 0.95, f"a command takes 1 ms at least: {length}")

    rows, warnings = recording.simulated("--policy", "native,HPF")
    check(not warnings, f"it is whole: {warnings}")
    if length > 1.5:
        print(f"a command took {length:.1f} ms: with so slow a machine, the device has more work than time, and tasks queue up")
        return
    for policy in ("native", "HPF"):
        for name, recorded in rows["recorded"].items():
            predicted = rows[policy][name]
            # A task that goes on at the end is a burst, and has not ended in the simulation.
            check(abs(recorded["tasks"] - predicted["tasks"]) <= 1, f"{policy}: as many tasks: {recorded}, {predicted}")
            ratio = predicted["commands_per_second"] / recorded["commands_per_second"]
            check(0.95 <= ratio <= 1.05, f"{policy}: the same throughput: {recorded}, {predicted}")


@test
@under("thread")
def holds_are_recorded_while_a_program_waits_for_a_more_urgent_one(place):
    place.start_server()
    at_work(place, 0, "continuous")
    at_work(place, 5)
    recording = Recording(place, "--seconds", "2")
    check(recording.end()[0] == 0, "it ends")
    low = {queue["id"] for queue in recording.of("queue") if queue["hints"]["priority"] == 0}
    holds = recording.of("hold")
    check(all(hold["why"] == "held" and hold["by"] not in low for hold in holds), f"because of the urgent one: {holds}")
    check(len(holds) >= 10 and {hold["queue"] for hold in holds} == low, f"the less urgent one is held, and it alone: {holds}")
    held_ns = sum(hold["span_ns"] for hold in holds)
    waited_ns = sum(burst.get("waiting_ns", 0) for burst in recording.of("burst") if burst["queue"] in low)
    check(abs(held_ns - waited_ns) <= 0.1 * held_ns, f"for as long as its bursts waited: {held_ns}, {waited_ns}")
    parts = [burst for burst in recording.of("burst") if burst["queue"] in low]
    check(all(burst.get("cut") for burst in parts), "it always has work")
    timeline = recording.path.with_suffix(".pftrace")
    told = place.tool("trace", str(recording.path), "--output", str(timeline))
    check(told.returncode == 0 and " requests: " in told.stderr, f"it is a timeline as well: {told.returncode}, {told.stderr}")
    shown = timeline.read_bytes().count(HELD_FOR)
    check(shown == 2 * len(holds), f"with all holds and the decisions: {shown} for {len(holds)}")


@test
@under("thread")
def what_was_is_explained_although_nobody_recorded_it(place):
    place.start_server()
    low, urgent = at_work(place, 0, "continuous"), at_work(place, 5)
    time.sleep(1)
    told = place.tool("explain", "--pid", str(low.process.pid), "--last", "30")
    check(told.returncode == 0, f"it can be asked: {told.stderr}")
    check(told.stdout.startswith(f"soft_client (pid {low.process.pid}), priority 0, 1 queue on "), f"of this program: {told.stdout}")
    reason = re.search(rf"in (\d+) waits: held for soft_client \(pid {urgent.process.pid}\), priority 5", told.stdout)
    check(reason is not None and int(reason.group(1)) >= 5, f"it waited for the urgent one: {told.stdout}")
    check("the server remembers the last " in told.stderr, f"the server has not been there for 30 s: {told.stderr}")

    timeline = pathlib.Path(place.folder) / "late.pftrace"
    told = place.tool("trace", "--last", "1", "--output", str(timeline))
    check(told.returncode == 0 and told.stderr.count("\n") == 1, f"it is a timeline as well: {told.stderr}")
    check(timeline.read_bytes().count(HELD_FOR) >= 5, "with the holds of the last second")

    recorded = pathlib.Path(place.folder) / "late.xrec"
    told = place.tool("record", "--last", "1", "--output", str(recorded))
    check(told.returncode == 0, f"and a recording: {told.stderr}")
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    check(all(0 <= line.get("t", 0) <= 1e9 for line in lines), "of that second")
    told = place.tool("explain", "--recording", str(recorded))
    check(told.returncode == 0 and f"held for soft_client (pid {urgent.process.pid})" in told.stdout, f"which explain reads: {told.stdout}")


def timeline(place, *source):
    """What xsched trace writes, by Perfetto's own definition of its format."""
    path = pathlib.Path(place.folder) / "recording.pftrace"
    told = place.tool("trace", *source, "--output", str(path))
    check(told.returncode == 0, f"it is a timeline: {told.stderr}")
    trace = perfetto_trace.read(path)
    found = perfetto_trace.faults(trace)
    check(not found, f"{source}: nothing is wrong with it: {found}")
    return trace


def recorded_while_one_waits(place):
    """The recording, and the clients: the less urgent one, and the one that it waits for."""
    perfetto_trace.perfetto()
    place.start_server()
    clients = at_work(place, 0, "continuous"), at_work(place, 5)
    recording = Recording(place, "--seconds", "1")
    check(recording.end()[0] == 0, "it ends")
    return recording, *clients


@test
def perfetto_reads_in_a_timeline_what_was_recorded(place):
    recording, low, urgent = recorded_while_one_waits(place)
    trace = timeline(place, str(recording.path))
    processes = perfetto_trace.processes_of(trace)
    programs = {(client.process.pid, "soft_client") for client in (low, urgent)}
    check(set(processes.values()) == programs, f"processes: {processes}")
    numbers = {queue["id"]: queue["number"] for queue in recording.of("queue")}
    slices = perfetto_trace.slices_of(trace)

    held = {(one.track.name, one.name, one.begin, one.end) for one in slices if one.track.name.endswith(" held")}
    lines = [(line["t"], line["hold"]) for line in recording.lines() if "hold" in line]
    check(held and held == {(f"queue {numbers[hold['queue']]} held", f"held for queue {numbers[hold['by']]} (soft_client)",
                             begin, begin + hold["span_ns"]) for begin, hold in lines}, f"all holds: {held} of {lines}")
    arrows = {min(one.arrows): processes[one.track.parent_uuid] for one in slices if one.name.startswith("goes before ")}
    ends = {min(one.arrows): processes[one.track.parent_uuid] for one in slices if one.track.name.endswith(" held")}
    check(arrows.keys() == ends.keys() and {*arrows.values(), *ends.values()} == programs, f"with arrows: {arrows}, {ends}")

    for key, note in (("commands", "commands"), ("device_ns", "device time, ns"), ("waiting_ns", "held or off the device, ns")):
        of_bursts = sum(burst.get(key, 0) for burst in recording.of("burst"))
        of_requests = sum(one.notes[note] for one in slices if one.name == "request")
        check(of_requests == of_bursts, f"{note}: {of_requests} of {of_bursts}")
    counters = perfetto_trace.counters_of(trace)
    with_work = [value for _, value in counters["software device 1: queues with work"]]
    check(max(with_work) == 2 and with_work[-1] == 0, f"queues with work: {counters}")
    in_flight = [(line["t"], line["in_flight"]) for line in recording.lines() if "in_flight" in line]
    check(in_flight and all((at, one["commands"]) in counters[f"queue {numbers[one['queue']]}: commands in flight"] for at, one in in_flight),
          f"commands in flight: {in_flight}, {counters}")
    times = [at for at, _ in perfetto_trace.events_of(trace)]
    check(times[-1] < 20e9, f"times count from the recording's beginning: {times[0]} to {times[-1]}")
    timeline(place, "--last", "1")


def torch_profile(pid, at_us):
    """As PyTorch's profiler writes it, in some 100 us from `at_us` on, beside what is outside the recording's time."""
    gpu = {"pid": 0, "tid": 7}
    thread = {"pid": pid, "tid": pid}
    late = at_us + 60_000_000
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **thread}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", **gpu}
    memory = {"ph": "i", "name": "[memory]", "s": "t", **thread}
    return {"baseTimeNanoseconds": 0, "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "thread_name", **gpu, "args": {"name": "stream 7"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", **thread, "ts": at_us, "dur": 40},
        {**launch, "ts": at_us + 10, "dur": 10.5}, {**launch, "ts": at_us + 30, "dur": 5},
        # Neither one contains the other.
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", **thread, "ts": at_us + 35, "dur": 20},
        {**kernel, "ts": at_us + 25, "dur": 50}, {**kernel, "ts": late, "dur": 50},
        {"ph": "s", "cat": "ac2g", "id": 1, "name": "ac2g", **thread, "ts": at_us + 10},
        {"ph": "f", "cat": "ac2g", "id": 1, "name": "ac2g", **gpu, "ts": at_us + 25, "bp": "e"},
        {"ph": "s", "cat": "ac2g", "id": 2, "name": "ac2g", **thread, "ts": at_us + 30},
        {"ph": "f", "cat": "ac2g", "id": 2, "name": "ac2g", **gpu, "ts": late, "bp": "e"},
        {"ph": "i", "name": "Iteration", "s": "g", **thread, "ts": at_us},
        {**memory, "ts": at_us + 5, "args": {"Total Allocated": 4096, "Device Type": 1, "Device Id": 0}},
        {**memory, "ts": at_us + 45, "args": {"Total Allocated": 0, "Device Type": 1, "Device Id": 0}}]}


@test
def perfetto_reads_in_a_timeline_what_pytorchs_profiler_recorded(place):
    recording, low, _ = recorded_while_one_waits(place)
    began = recording.lines()[0]["recorded"]["started_unix_ns"]
    at_us = began // 1000 + 500_000
    profile = pathlib.Path(place.folder) / "torch.json"
    profile.write_text(json.dumps(torch_profile(low.process.pid, at_us)))
    trace = timeline(place, str(recording.path), "--torch", str(profile))
    times = [at for at, _ in perfetto_trace.events_of(trace)]
    check(began <= times[0] and times[-1] <= began + 20e9, f"times are Unix times: {times[0]} to {times[-1]} from {began}")

    slices = perfetto_trace.slices_of(trace)
    of_torch = {one.name: one for one in slices if one.name in ("aten::mm", "cudaLaunchKernel", "aten::add", "gemm", "Iteration")}

    def check_slice(name, category, track, begin_us, length_ns):
        one = of_torch[name]
        check((one.categories, one.track.name) == ([category] if category else [], track), f"{name}: {one.categories}, {one.track}")
        begin = (at_us + begin_us) * 1000
        check((one.begin, one.end) == (begin, begin + length_ns), f"{name}: {one.begin} to {one.end} for {begin}, {length_ns}")
        return one

    thread = f"thread {low.process.pid}"
    for one in (check_slice("aten::mm", "cpu_op", thread, 0, 40_000), check_slice("aten::add", "cpu_op", f"{thread} (2)", 35, 20_000),
                check_slice("Iteration", "", thread, 0, 0)):
        process = perfetto_trace.processes_of(trace)[one.track.parent_uuid]
        check(process == (low.process.pid, "soft_client"), f"{one.name} is in the recorded process: {process}")
    kernel = check_slice("gemm", "kernel", "stream 7", 25, 50_000)
    launches = [one for one in slices if one.name == "cudaLaunchKernel"]
    check([one.arrows for one in launches] == [kernel.arrows, set()], f"one arrow, to the kernel: {[one.arrows for one in launches]}")
    check(kernel.arrows, "from the launch")
    counters = perfetto_trace.counters_of(trace)
    memory = [((at_us + 5) * 1000, 4096), ((at_us + 45) * 1000, 0)]
    check(counters["torch: allocated memory of GPU 0, bytes"] == memory, f"memory: {counters}")


@test
@under("address")
def ctrl_c_ends_a_recording_in_order(place):
    place.start_server()
    at_work(place, 0)
    recording = Recording(place)
    status, errors = recording.end(signal.SIGINT)
    check(status == 0, f"it ends well: {status}, {errors}")
    check(recording.lines()[-1]["end"] == {"why": "interrupted"}, "and so does the file")


@test
@under("thread")
def when_the_server_ends_the_file_has_an_end_and_the_command_says_so(place):
    place.start_server()
    at_work(place, 0)
    recording = Recording(place)
    place.server.kill()
    place.server.wait()
    status, errors = recording.end()
    check(status == 3 and "the server ended" in errors and str(recording.path) in errors, f"it says so: {status}, {errors}")
    check("server" in recording.lines()[-1]["end"]["why"], "and so does the file")
    _, warnings = recording.simulated("--policy", "native")
    check(not warnings, f"which has an end: {warnings}")


@test
@under("address")
def only_the_named_process_is_recorded_and_an_anonymous_file_names_nobody(place):
    place.start_server()
    named, other = at_work(place, 5), at_work(place, 0)
    recording = Recording(place, "--seconds", "1", "--anonymous", "--pid", str(named.process.pid))
    check(recording.end()[0] == 0, "it ends")
    text = recording.path.read_text()
    check([queue["hints"]["priority"] for queue in recording.of("queue")] == [5], "one queue")
    check(len(recording.of("process")) == 1 and recording.of("process")[0]["name"] == "program 1", "without a name")
    for hidden in ("soft_client", f'"pid":{named.process.pid}', f'"pid":{other.process.pid}'):
        check(hidden not in text, f"{hidden} is not in it")


@test
@under("address")
def a_recorder_that_is_stopped_or_killed_delays_nobody(place):
    place.start_server()
    low, high = held_client(place)
    recording = Recording(place)
    recording.process.send_signal(signal.SIGSTOP)
    before = high.progress()
    wait_until(lambda: high.progress() > before + 200, "the program goes on")
    check(place.queues(), "and the server answers")
    recording.process.kill()
    recording.process.communicate()
    high.end()
    before = low.progress()
    wait_until(lambda: low.progress() > before + 50, "what was held goes on when it may")


if __name__ == "__main__":
    main(__doc__)
