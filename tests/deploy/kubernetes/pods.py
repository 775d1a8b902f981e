#!/usr/bin/env python3
"""Priorities of pods: the real agent and server, processes in control groups of pods, and an API server that checks what it is asked.

  pods.py --bin FOLDER --lib FOLDER [TEST…]
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from harness import Client, check, main, skip, test, wait_until  # noqa: E402
from fake_cluster import HAS_GROUPS, NODE, ApiServer, in_pod, remove_groups, uid_of  # noqa: E402

USER = 60003


@contextlib.contextmanager
def cluster(place, *arguments, prefix=()):
    """An API server, and the agent beside a server that runs already. `prefix`: what starts the agent."""
    if not HAS_GROUPS:
        skip("control groups of version 1 cannot be made here")
    api = ApiServer(place.folder)
    place.log = pathlib.Path(place.folder) / "agent.log"
    environment = {**os.environ, **place.env, "NODE_NAME": NODE}
    with place.log.open("wb") as log:
        agent = subprocess.Popen([*prefix, str(place.bin / "xsched-kubernetes"), "pods", "--api-server", api.url, "--account", str(api.account),
                                  "--look-period-ms", "50", "--refresh-period-ms", "300", *arguments], env=environment, stderr=log)
    place.agent = agent
    try:
        yield api
        agent.terminate()
        check(agent.wait(10) == 0, f"the agent ends in order: {place.log.read_text()}")
    finally:
        agent.kill()
        agent.wait()
        for client in place.clients:
            client.end()
        api.close()
        remove_groups()


def program_in_pod(place, uid, priority=0):
    return Client(place, priority, "continuous", prefix=in_pod(uid))


def priority_of(place, client):
    found = [queue["priority"] for queue in place.queues() if queue["pid"] == client.process.pid]
    return found[0] if found else None


def wait_for_priority(place, client, wanted):
    wait_until(lambda: priority_of(place, client) == wanted,
               lambda: f"priority {wanted}: {place.queues()}\n{place.log.read_text()}")


@test
def a_pod_has_the_priority_of_its_class_and_may_ask_for_less(place):
    place.start_server()
    with cluster(place) as api:
        api.add_class("gpu-urgent", "10")
        api.add_pod(uid_of("a"), priority_class="gpu-urgent")
        api.add_pod(uid_of("b"), priority_class="gpu-urgent", annotation="4")
        api.add_pod(uid_of("d"), variables={"CUDA_TASK_PRIORITY": "1"})
        clients = {letter: program_in_pod(place, uid_of(letter)) for letter in "abd"}
        for letter, wanted in (("a", 10), ("b", 4), ("d", -10)):
            wait_for_priority(place, clients[letter], wanted)


@contextlib.contextmanager
def kubelet_with_pod(place, socket, name):
    """A kubelet that lists this pod of the namespace lab."""
    with subprocess.Popen([place.bin / "fake_kubelet", "--pods", socket, "lab", name], stdin=subprocess.PIPE) as kubelet:
        yield
        kubelet.stdin.close()
        check(kubelet.wait(10) == 0, "the kubelet was asked as it should be")


@test
def a_static_pod_has_the_priority_of_its_mirror_pod_once_the_kubelet_lists_it(place):
    place.start_server()
    socket = pathlib.Path(place.folder) / "kubelet" / "pod-resources.sock"
    with cluster(place, "--pod-resources", str(socket)) as api:
        static = "0123456789abcdef" * 2
        api.add_class("gpu-urgent", "10")
        api.add_pod(uid_of("a"), priority_class="gpu-urgent")
        api.make_mirror(uid_of("a"), static)
        client = program_in_pod(place, static, priority=-3)
        wait_until(lambda: f"static pods are not known: the kubelet does not list pods at {socket}" in place.log.read_text(), "the reason is said")
        check(priority_of(place, client) == -3, "anybody may write the annotation of a mirror pod")
        with kubelet_with_pod(place, socket, "pod-a"):
            wait_for_priority(place, client, 10)


@test
def what_a_claim_of_a_pod_asks_for_counts_up_to_its_class(place):
    place.start_server()
    with cluster(place, "--claims") as api:
        api.add_class("gpu-urgent", "10")
        for letter, priority_class, claimed in (("a", "gpu-urgent", -5), ("b", "gpu-urgent", 50), ("d", None, 50)):
            api.add_pod(uid_of(letter), priority_class=priority_class)
            api.add_claim(uid_of(letter), f"claim-{letter}", claimed)
        clients = {letter: program_in_pod(place, uid_of(letter)) for letter in "abd"}
        for letter, wanted in (("a", -5), ("b", 10), ("d", 0)):
            wait_for_priority(place, clients[letter], wanted)
        check(api.requests.count("/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/claim-a") == 1, "a claim is read once")


@test
def without_a_word_of_claims_none_is_read(place):
    place.start_server()
    with cluster(place) as api:
        api.add_pod(uid_of("a"))
        api.add_claim(uid_of("a"), "claim-a", -5)
        api.add_pod(uid_of("b"), annotation="-7")
        first, second = (program_in_pod(place, uid_of(letter), priority=-3) for letter in "ab")
        wait_for_priority(place, second, -7)
        check(priority_of(place, first) == -3 and not any("resourceclaims" in path for path in api.requests), "nor may it")


@test
def a_pod_without_a_right_does_not_raise_itself(place):
    place.start_server()
    with cluster(place, "--max-priority", "7") as api:
        api.add_class("gpu-urgent", "10")
        api.add_pod(uid_of("a"), annotation="200")
        api.add_pod(uid_of("b"), priority_class="gpu-urgent", annotation="200")
        api.add_pod(uid_of("d"), annotation="high")
        first, second, third = (program_in_pod(place, uid_of(letter), priority=-3) for letter in "abd")
        wait_for_priority(place, first, 0)
        wait_for_priority(place, second, 7)
        wait_until(lambda: 'its annotation xsched.org/priority "high" is no number' in place.log.read_text(), "what is not understood is named")
        check(priority_of(place, third) == -3, "and the program has its own priority")
        said = place.log.read_text()
        line = "pod lab/pod-a: priority 200 is lowered to 0"
        check(said.count(line) == 1, f"it is said once: {said}")


@test
def the_agent_and_the_server_need_no_capability_and_may_be_in_a_pod_themselves(place):
    if not HAS_GROUPS:
        skip("control groups of version 1 cannot be made here")
    as_in_manifest = [*in_pod(uid_of("e")), "unshare", "--cgroup", "setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    rules = pathlib.Path(place.folder) / "tenants.toml"
    rules.write_text(f'[[tenant]]\nname = "first"\npods = ["{uid_of("a")}"]\n')
    place.server = subprocess.Popen([*as_in_manifest, str(place.bin / "xserver"), "--system", "--socket", place.socket, "--log-level", "error",
                                     "--tenants", str(rules)])
    wait_until(lambda: os.path.exists(place.socket), "the server listens")
    with cluster(place, prefix=as_in_manifest) as api:
        api.add_class("gpu-urgent", "10")
        api.add_pod(uid_of("a"), priority_class="gpu-urgent")
        client = program_in_pod(place, uid_of("a"))
        wait_for_priority(place, client, 10)
        queue = next(queue for queue in place.queues() if queue["pid"] == client.process.pid)
        check(queue["tenant"] == "first", f"the server knows the pod as well: {queue}")
        check(queue["counted_priority"] == 10, f"and the priority counts: {queue}")


def as_user():
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


@test
def a_program_that_raises_itself_gets_no_more_than_its_pod_may_have_and_lowers_nobody(place):
    os.chmod(place.folder, 0o755)
    rules = pathlib.Path(place.folder) / "tenants.toml"
    rules.write_text('[[tenant]]\nname = "pods"\npods = ["*"]\nmax_priority = 0\n')
    place.start_server("--system", "--tenants", str(rules))
    if subprocess.run([*as_user(), str(place.bin / "xsched"), "--version"], capture_output=True).returncode != 0:
        skip("other users cannot reach the build's folder")
    with cluster(place) as api:
        api.add_class("gpu-some", "3")
        api.add_pod(uid_of("a"))
        api.add_pod(uid_of("b"))
        api.add_pod(uid_of("d"), priority_class="gpu-some")
        victim = program_in_pod(place, uid_of("a"))
        greedy = Client(place, 200, "continuous", prefix=[*in_pod(uid_of("b")), *as_user()])
        allowed = Client(place, 0, "continuous", prefix=[*in_pod(uid_of("d")), *as_user()])

        def counts():
            found = {queue["pid"]: (queue["priority"], queue["counted_priority"]) for queue in place.queues()}
            return [found.get(client.process.pid) for client in (victim, greedy, allowed)]

        def hint(client, priority):
            done = subprocess.run([*as_user(), str(place.bin / "xsched"), "hint", "--pid", str(client.process.pid), "--priority", str(priority)],
                                  env={**os.environ, **place.env}, capture_output=True, text=True)
            check(done.returncode == 0, f"its user may: {done.stderr}")

        wait_until(lambda: counts() == [(0, 0), (0, 0), (3, 3)], lambda: f"{counts()}\n{place.log.read_text()}")
        hint(greedy, 100)
        hint(allowed, 100)
        wait_until(lambda: counts() == [(0, 0), (0, 0), (3, 3)], lambda: f"{counts()}\n{place.log.read_text()}")
        hint(allowed, 1)
        hint(greedy, -4)
        wait_until(lambda: counts() == [(0, 0), (-4, -4), (1, 1)], lambda: f"less is always possible: {counts()}")


@contextlib.contextmanager
def pods_of_users(place):
    """All pods are one tenant without a right, as in the manifests. Its programs are of a user: root's claim what they like."""
    os.chmod(place.folder, 0o755)
    rules = pathlib.Path(place.folder) / "tenants.toml"
    rules.write_text('[[tenant]]\nname = "pods"\npods = ["*"]\nmax_priority = 0\n')
    place.audit = pathlib.Path(place.folder) / "server.log"
    with place.audit.open("wb") as log:
        place.start_server("--system", "--tenants", str(rules), log_level="info", stderr=log)
    if subprocess.run([*as_user(), str(place.bin / "xsched"), "--version"], capture_output=True).returncode != 0:
        skip("other users cannot reach the build's folder")
    with cluster(place) as api:
        yield api


def users_program_in_pod(place, uid, priority=0):
    return Client(place, priority, "continuous", prefix=[*in_pod(uid), *as_user()])


def hint_by_user(place, client, *hints):
    done = subprocess.run([*as_user(), str(place.bin / "xsched"), "hint", "--pid", str(client.process.pid), *hints],
                          env={**os.environ, **place.env}, capture_output=True, text=True)
    check(done.returncode == 0, f"its user may: {done.stderr}")


def queue_of(place, client):
    return next((queue for queue in place.queues() if queue["pid"] == client.process.pid), {})


@test
def a_program_that_changes_its_priority_for_a_moment_keeps_that_of_its_pod(place):
    with pods_of_users(place) as api:
        api.add_class("gpu-urgent", "10")
        api.add_pod(uid_of("a"), priority_class="gpu-urgent")
        urgent = users_program_in_pod(place, uid_of("a"))
        wait_until(lambda: queue_of(place, urgent).get("counted_priority") == 10, lambda: f"{place.queues()}")
        place.agent.send_signal(signal.SIGSTOP)
        hint_by_user(place, urgent, "--priority", "5")
        hint_by_user(place, urgent, "--priority", "10")
        check(queue_of(place, urgent)["counted_priority"] == 0, "it is a claim now")
        place.agent.send_signal(signal.SIGCONT)
        wait_until(lambda: queue_of(place, urgent)["counted_priority"] == 10, lambda: f"it counts again: {place.queues()}")


# It may change it again at any time: what is written back would undo that.
@test
def a_priority_that_counts_is_left_to_the_program(place):
    with pods_of_users(place) as api:
        api.add_class("gpu-urgent", "10")
        api.add_pod(uid_of("a"), priority_class="gpu-urgent")
        program = users_program_in_pod(place, uid_of("a"))
        wait_until(lambda: queue_of(place, program).get("counted_priority") == 10, lambda: f"{place.queues()}")

        def set_by_the_agent():
            return [line for line in place.audit.read_text().splitlines() if f"pid {place.agent.pid} " in line]

        before = set_by_the_agent()
        check(len(before) == 1, f"the agent has set it once: {place.audit.read_text()}")
        hint_by_user(place, program, "--priority", "-5")
        time.sleep(0.5)  # ten looks
        check(set_by_the_agent() == before, f"and not again: {place.audit.read_text()}")
        check(queue_of(place, program)["counted_priority"] == -5, f"{place.queues()}")


@test
def a_laxity_gets_no_more_than_its_pod_may_have_and_lowers_nobody(place):
    with pods_of_users(place) as api:
        api.add_pod(uid_of("a"))
        greedy = users_program_in_pod(place, uid_of("a"))
        wait_for_priority(place, greedy, 0)
        hint_by_user(place, greedy, "--laxity-us", "1", "--priority", "255")
        wait_until(lambda: queue_of(place, greedy)["critical_priority"] == 0, lambda: f"it is lowered: {place.queues()}")
        unknown = users_program_in_pod(place, uid_of("b"))
        wait_until(lambda: queue_of(place, unknown), "a program of a pod that the agent does not find")
        check(queue_of(place, unknown)["counted_priority"] == 0, f"counts as before: {place.queues()}")
        check(queue_of(place, greedy)["laxity_us"] == 1, "its time stays")


@test
def a_program_in_no_pod_stays_as_it_is(place):
    place.start_server()
    with cluster(place) as api:
        api.add_pod(uid_of("a"), annotation="-5")
        other = Client(place, 3, "continuous")
        wait_for_priority(place, program_in_pod(place, uid_of("a")), -5)
        check(priority_of(place, other) == 3, "another program")


@test
def a_change_of_the_annotation_counts_and_so_does_a_new_pod(place):
    place.start_server()
    with cluster(place) as api:
        api.add_pod(uid_of("a"), annotation="-5")
        client = program_in_pod(place, uid_of("a"))
        wait_for_priority(place, client, -5)
        api.add_pod(uid_of("a"), annotation="-6")
        wait_for_priority(place, client, -6)
        later = program_in_pod(place, uid_of("b"))
        wait_until(lambda: priority_of(place, later) == 0, "it is there before its pod is known")
        api.add_pod(uid_of("b"), annotation="-7")
        wait_for_priority(place, later, -7)


@test
def after_a_restart_of_the_server_the_priorities_are_set_again(place):
    place.start_server()
    with cluster(place) as api:
        api.add_pod(uid_of("a"), annotation="-5")
        wait_for_priority(place, program_in_pod(place, uid_of("a")), -5)
        place.server.kill()
        place.server.wait()
        wait_until(lambda: "the server at" in place.log.read_text(), "the agent says that it is gone")
        place.start_server()
        wait_for_priority(place, program_in_pod(place, uid_of("a")), -5)


@test
def a_refusal_of_the_api_server_is_said_and_a_new_token_counts(place):
    place.start_server()
    with cluster(place) as api:
        api.token = "next"
        api.add_pod(uid_of("a"), annotation="-5")
        client = program_in_pod(place, uid_of("a"), priority=1)
        wait_until(lambda: "answers 401 to GET /apis/scheduling.k8s.io/v1/priorityclasses" in place.log.read_text(), "the reason is said")
        check(priority_of(place, client) == 1, "the program has its own priority meanwhile")
        (api.account / "token").write_text("next\n")
        wait_for_priority(place, client, -5)


@test
def an_api_server_with_another_certificate_is_not_asked(place):
    place.start_server()
    with cluster(place) as api:
        requests = len(api.requests)
        (api.account / "ca.crt").write_text("")
        api.add_pod(uid_of("a"), annotation="-5")
        program_in_pod(place, uid_of("a"))
        wait_until(lambda: f"pods are not known: {api.url}" in place.log.read_text(), lambda: f"it is said: {place.log.read_text()}")
        check(len(api.requests) == requests, "and the token is not sent")


main(__doc__)
