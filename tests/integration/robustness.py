#!/usr/bin/env python3
"""Scheduling goes on when real processes are killed, stopped or stuck at a bad moment."""
import os
import signal
import subprocess
import sys
import time

from harness import (Client, check, held_client, in_private_dev_shm, left_nothing, main, now_ms, skip, slack, test, under,
                     wait_until)


@test
def without_a_server_a_program_runs_natively_with_one_warning(place):
    client = Client(place, 0, "continuous", 1)
    client.process.wait()
    check(client.progress() > 300, f"it ran ({client.progress()} commands)")
    warnings = client.process.stderr.read().strip().splitlines()
    check(len(warnings) == 1 and "xsched:" in warnings[0], f"one warning: {warnings}")


def server_ends(place, how):
    place.start_server()
    low, _ = held_client(place)
    moment = now_ms()
    place.server.send_signal(how)
    place.server.wait()
    time.sleep(0.4)
    after, bound = low.resumed_after(moment), slack()
    check(after is not None and after <= bound, f"the held client goes on within 100 ms: {after} (bound here {bound:.0f})")
    moment = now_ms()
    place.start_server()
    wait_until(lambda: any(q["state"] == "held" for q in place.queues()), "scheduled again without restart", 3)
    check(now_ms() - moment < 2000 + slack(), "within 2 s")


@test
@under("address")
def when_the_server_is_terminated_clients_run_on_and_are_scheduled_again_after_its_return(place):
    server_ends(place, signal.SIGTERM)


@test
@under("thread")
def when_the_server_is_killed_clients_run_on_and_are_scheduled_again_after_its_return(place):
    server_ends(place, signal.SIGKILL)


@test
@under("thread")
def when_the_server_hangs_clients_run_on_and_are_scheduled_again_when_it_goes_on(place):
    place.start_server()
    low, _ = held_client(place)
    moment = now_ms()
    place.server.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    after, bound = low.resumed_after(moment), slack() + 150
    check(after is not None and after <= bound, f"the held client goes on within 250 ms: {after} (bound here {bound:.0f})")
    moment = now_ms()
    new = Client(place, 0, "continuous")
    wait_until(lambda: new.progress() > 0, "a program starts beside it", 5)
    took = now_ms() - moment
    check(took < 400 + slack(), f"without waiting for it: {took} ms")
    place.server.send_signal(signal.SIGCONT)
    wait_until(lambda: sum(q["state"] == "held" for q in place.queues()) == 2, "all are scheduled again", 3)


def high_client_fails(place, how):
    place.start_server()
    low, high = held_client(place)
    moment = now_ms()
    high.kill(how)
    time.sleep(0.5)
    after, bound = low.resumed_after(moment), slack()
    check(after is not None and after <= bound, f"the held client goes on within 100 ms: {after} (bound here {bound:.0f})")
    return low, high


@test
@under("thread")
def when_a_client_is_killed_those_that_it_held_go_on(place):
    high_client_fails(place, signal.SIGKILL)
    wait_until(lambda: len(place.queues()) == 1, "its queue is gone")


@test
@under("thread")
def when_a_client_is_stopped_those_that_it_held_go_on_until_it_is_continued(place):
    _, high = high_client_fails(place, signal.SIGSTOP)
    high.kill(signal.SIGCONT)
    wait_until(lambda: any(q["priority"] == 0 and q["state"] == "held" for q in place.queues()), "its claim is back")


@test
def a_client_that_is_stuck_holds_nobody_up_for_long(place):
    place.start_server()
    low = Client(place, 0, "continuous")
    wait_until(lambda: low.progress() > 20, "the low client runs")
    Client(place, 5, "stuck")
    wait_until(lambda: any(q["priority"] == 5 and q["incidents"] > 0 for q in place.queues()), "an incident is counted")
    before = low.progress()
    wait_until(lambda: low.progress() - before > 50, "the low client runs beside it", 2)


@test
@under("address")
def after_exec_a_program_is_a_new_client(place):
    place.start_server()
    client = Client(place, 3, "task", 5, "exec")
    wait_until(lambda: client.progress() > 10, "it runs after exec")
    queues = place.queues()
    check(len(queues) == 1 and queues[0]["pid"] == client.process.pid, f"one queue, of the new program: {queues}")


@test
@under("address")
def a_forked_child_is_a_client_of_its_own_and_keeps_nothing_of_its_parent(place):
    place.start_server()
    client = Client(place, 3, "continuous", 6, "fork")
    wait_until(lambda: len(place.queues()) == 2, "two queues")
    pids = {q["pid"] for q in place.queues()}
    check(len(pids) == 2 and client.process.pid in pids, f"of two processes: {pids}")
    client.kill(signal.SIGKILL)
    wait_until(lambda: [q["pid"] for q in place.queues()] == list(pids - {client.process.pid}), "the parent's queue is gone", 2)


@test
@under("thread")
def exit_from_any_thread_while_held_ends_the_program(place):
    place.start_server()
    high = Client(place, 5, "continuous")
    wait_until(lambda: high.progress() > 10, "the high client runs")
    low = Client(place, 0, "continuous", 20, "exit-thread")
    try:
        code = low.process.wait(5)
    except subprocess.TimeoutExpired:
        sys.exit("failed: it hangs")
    check(code == 7, f"with its own status: {code}")


@test
def five_hundred_queues_leave_no_descriptor_and_no_thread(place):
    place.start_server()
    client = Client(place, 0, "idle", 1, "queues")
    check(client.process.wait(30) == 0, "it ends well")
    client.reader.join()
    left_nothing(client.lines[-1], "queues", 1024)
    wait_until(lambda: place.queues() == [], "the server has forgotten them")


@test
def a_second_server_says_that_there_is_one_and_exits(place):
    place.start_server()
    second = subprocess.run([str(place.bin / "xserver"), "--socket", place.socket], capture_output=True, text=True, timeout=10)
    check(second.returncode == 3 and "already" in second.stderr, f"{second.returncode}: {second.stderr}")
    check(place.tool("policy", "show").returncode == 0, "the first one still serves")


@test
@under("address")
def a_low_limit_of_descriptors_is_a_clear_message_and_the_program_runs(place):
    place.start_server()
    client = Client(place, 0, "continuous", 1, prefix=("sh", "-c", 'ulimit -n 4; exec "$0" "$@"'))
    client.process.wait()
    check(client.progress() > 300 or "XQueueCreate" in "".join(client.lines), "it ran")
    text = client.process.stderr.read()
    check("Too many open files" in text and "unscheduled" in text, f"it says why: {text}")


@test
def a_missing_runtime_folder_is_a_clear_message_and_the_program_runs(place):
    nowhere = {"XSCHED_SOCKET": "", "XDG_RUNTIME_DIR": "/nonexistent/folder"}
    client = Client(place, 0, "continuous", 1, env=nowhere)
    client.process.wait()
    check(client.progress() > 300, "it ran")
    text = client.process.stderr.read()
    if not text and place.tool("policy", "show", env=nowhere).returncode == 0:
        skip("a server runs on this machine")
    # In place of such a folder there is the user's in /tmp, if it has been made, and then the system's.
    places = (f"/tmp/xsched-{os.geteuid()}/", "/run/xsched/")
    check(any(place in text for place in places), f"it says where it looked: {text}")


@test
def a_read_only_dev_shm_changes_nothing(place):
    prefix = in_private_dev_shm("ro,size=4k")
    place.start_server()
    Client(place, 0, "continuous", 3, prefix=prefix)
    wait_until(lambda: len(place.queues()) == 1, "it is scheduled")


@test
def a_full_dev_shm_changes_nothing(place):
    # No byte and no inode is left.
    prefix = in_private_dev_shm("size=4k,nr_inodes=2", "head -c 4096 /dev/zero > /dev/shm/full && ! touch /dev/shm/more 2>&- && ")
    place.start_server()
    low = Client(place, 0, "continuous", prefix=prefix)
    wait_until(lambda: low.progress() > 20, "it runs")
    Client(place, 5, "continuous", prefix=prefix)
    wait_until(lambda: any(q["priority"] == 0 and q["state"] == "held" for q in place.queues()), "it is scheduled")
    check(low.end() == "", "without a word")


@test
@under("thread")
def in_one_process_the_local_scheduler_serves_alone(place):
    client = Client(place, 0, "continuous", 1, env={"XSCHED_SCHEDULER": "LCL", "XSCHED_POLICY": "HPF"})
    client.process.wait()
    check(client.progress() > 300, "it ran")
    check(client.process.stderr.read() == "", "without a word")


@test
def shares_of_75_and_25_are_kept(place):
    place.start_server("--policy", "UP")
    # Each client's device has its own thread, so that only the policy divides the time.
    one, two = Client(place, 0, "continuous"), Client(place, 0, "continuous")
    wait_until(lambda: len(place.queues()) == 2, "two queues")
    first, second = sorted(place.queues(), key=lambda q: q["queue"])
    place.tool("hint", "--queue", str(first["queue"]), "--utilization", "75")
    place.tool("hint", "--queue", str(second["queue"]), "--utilization", "25")
    time.sleep(0.3)
    before = {q["queue"]: q["service_ns"] for q in place.queues()}
    time.sleep(2)
    after = {q["queue"]: q["service_ns"] for q in place.queues()}
    got = {key: after[key] - before[key] for key in before}
    share = got[first["queue"]] / sum(got.values())
    check(abs(share - 0.75) <= 0.05, f"75 : 25 within 5 points: {share:.3f}")


@test
def threads_that_come_and_go_leave_nothing(place):
    place.start_server()
    Client(place, 5, "task")
    client = Client(place, 0, "idle", 1, "threads")
    check(client.process.wait(30) == 0, "it ends well")
    client.reader.join()
    left_nothing(client.lines[-1], "threads", 1024)
    check(client.process.stderr.read() == "", "without a word")


if __name__ == "__main__":
    main(__doc__)
