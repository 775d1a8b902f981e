#!/usr/bin/env python3
"""Metrics of a real server with real clients, read by a real Prometheus."""
import pathlib
import re
import socket
import subprocess
import urllib.error

from harness import Client, check, main, test, wait_until
from prometheus import Prometheus, program, read, start_server

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def prometheus_of(place, port):
    """One that scrapes the server at this port."""
    return Prometheus(pathlib.Path(place.folder) / "prometheus", f"""
scrape_configs:
  - job_name: xsched
    static_configs:
      - targets: ["127.0.0.1:{port}"]
""")


def wait_for_queues(place, pid):
    """The numbers of this process's queues."""
    def found():
        return [queue["queue"] for queue in place.queues() if queue["pid"] == pid]

    wait_until(found, "the process has a queue")
    return found()


@test
def promtool_finds_nothing_to_criticize(place):
    promtool = program("promtool")
    _, url = start_server(place, "--metrics-per-queue")
    Client(place, 5, "task")
    Client(place, 0, "continuous")
    wait_until(lambda: read(url).count("xsched_process_preemptions_total{") == 2, "both are there")
    wait_until(lambda: "xsched_queue_request_latency_seconds_count{" in read(url), "a queue has requests", 30)
    page = read(url, accept="text/plain")
    outcome = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    check(outcome.returncode == 0 and not outcome.stdout + outcome.stderr, f"promtool: {outcome.stdout}{outcome.stderr}")


@test
def prometheus_scrapes_what_two_programs_have_had(place):
    program("prometheus")
    port, _ = start_server(place)
    urgent = Client(place, 5, "task", seconds=60)
    low = Client(place, 0, "continuous", seconds=60)
    with prometheus_of(place, port) as prometheus:
        prometheus.wait_for('up{job="xsched"} == 1')
        wait_until(lambda: (prometheus.value('xsched_user_preemptions_total{priority="0"}') or 0) > 3, "the low one is held", 30)
        wait_until(lambda: (prometheus.value(f'xsched_process_device_time_seconds_total{{pid="{urgent.process.pid}"}}') or 0) > 0.1,
                   "the urgent one has device time", 30)
        wait_until(lambda: (prometheus.value(f'xsched_process_held_seconds_total{{pid="{low.process.pid}",reason="held"}}') or 0) > 0.05,
                   "the low one is held for some time", 30)
        # A task takes 30 ms, and more on a machine that is busy.
        wait_until(lambda: (prometheus.value('xsched_user_request_latency_seconds_count{priority="5"}') or 0) > 5, "it has requests", 30)
        median = prometheus.value('histogram_quantile(0.5, xsched_user_request_latency_seconds_bucket{priority="5"})')
        check(median is not None and 0.01 < median < 1, f"its requests have a latency: {median}")
        labels, busy = prometheus.values("xsched_device_busy_seconds_total")[0]
        check(labels["model_name"] == "software device 1" and busy > 0, f"the device was busy: {labels} {busy}")
        check(prometheus.value("xsched_server_clients") == 2, "two clients")
        shown = {queue["pid"]: queue["service_ns"] / 1e9 for queue in place.queues()}
        for client in (urgent, low):
            query = f'xsched_process_device_time_seconds_total{{pid="{client.process.pid}"}}'
            wait_until(lambda query=query, pid=client.process.pid: (prometheus.value(query) or 0) >= shown[pid],
                       "it has what xsched list has shown, or more", 30)
        before = prometheus.value('xsched_user_device_time_seconds_total{priority="0"}')
        low.kill()
        wait_until(lambda: not prometheus.values(f'xsched_process_queues{{pid="{low.process.pid}"}}'), "its series end with it", 30)
        check(prometheus.value('xsched_user_device_time_seconds_total{priority="0"}') >= before, "what it had stays with its user")
        for metric in ("xsched_user_device_time_seconds_total", "xsched_device_busy_seconds_total", "xsched_server_decisions_total"):
            check(prometheus.value(f"max(resets({metric}[5m]))") == 0, f"{metric} never falls")
        targets = prometheus.ask("targets")["activeTargets"]
        check(targets[0]["lastError"] == "", f"no scrape failed: {targets}")
        metadata = prometheus.ask("metadata")
        check(metadata["xsched_user_request_latency_seconds"][0]["type"] == "histogram", f"it knows the types: {metadata}")


@test
def a_queue_has_a_histogram_of_its_own_only_where_the_operator_wants_it(place):
    program("prometheus")
    port, _ = start_server(place, "--metrics-per-queue")
    Client(place, 0, "continuous", seconds=60)
    urgent = Client(place, 5, "task", seconds=60)
    with prometheus_of(place, port) as prometheus:
        [queue] = wait_for_queues(place, urgent.process.pid)
        count = f'xsched_queue_request_latency_seconds_count{{queue="{queue}",pid="{urgent.process.pid}"}}'
        wait_until(lambda: (prometheus.value(count) or 0) > 5, "the queue has requests", 30)
        bucket = count.replace("_count", "_bucket")
        median = prometheus.value(f"histogram_quantile(0.5, {bucket})")
        check(median is not None and 0.01 < median < 1, f"they have a latency: {median}")
        had = prometheus.value(count)
        urgent.kill()
        wait_until(lambda: not prometheus.values(count), "the series ends with the queue", 30)
        check(prometheus.value('xsched_user_request_latency_seconds_count{priority="5"}') >= had, "what it had stays with its user")
        check(prometheus.value("max(resets(xsched_queue_request_latency_seconds_count[5m]))") == 0, "no count falls")
        check(prometheus.value("xsched_server_requests_without_queue_total") == 0, "there is room for both")


@test
def single_queues_have_no_series_by_default(place):
    _, url = start_server(place)
    Client(place, 0, "continuous", seconds=60)
    urgent = Client(place, 5, "requests", seconds=1)
    urgent.process.wait()
    wait_until(lambda: re.search(r"^xsched_user_request_latency_seconds_count{.*} [1-9]", read(url), re.M), "there are requests")
    check("xsched_queue_request_latency_seconds_count{" not in read(url), "no queue has a series")


# The next request begins before the server has seen the end of the one before.
@test
def each_request_of_a_closed_loop_beside_a_competitor_is_counted(place):
    _, url = start_server(place)
    Client(place, 0, "continuous", seconds=60)
    wait_until(lambda: "xsched_process_queues{" in read(url), "the competitor is there")
    urgent = Client(place, 5, "requests", seconds=2)
    urgent.process.wait()
    wait_until(lambda: urgent.lines, "it has said how many there were")
    requests = int(urgent.lines[0].removeprefix("requests "))
    counted = int(float(re.search(r'^xsched_user_request_latency_seconds_count{[^}]*priority="5"[^}]*} (\S+)', read(url), re.M)[1]))
    # The first ones may begin before the queue is known, and the last one may end when it is gone.
    check(requests > 20 and requests - 3 <= counted <= requests, f"{counted} requests are counted of {requests}")


@test
def prometheus_sees_that_the_server_is_gone(place):
    program("prometheus")
    port, url = start_server(place)
    with prometheus_of(place, port) as prometheus:
        prometheus.wait_for('up{job="xsched"} == 1')
        place.server.kill()
        place.server.wait()
        wait_until(lambda: prometheus.value('up{job="xsched"}') == 0, "up is 0", 30)
        try:
            read(url)
            check(False, "nobody answers")
        except urllib.error.URLError:
            pass


@test
def a_service_manager_may_hand_over_the_socket(place):
    place.start_server()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        # As systemd does: the socket is descriptor 3, and the variables name this process.
        command = 'exec 3<&"$1" && LISTEN_PID=$$ LISTEN_FDS=1 exec "$2" --metrics-only --socket "$3"'
        with subprocess.Popen(["sh", "-c", command, "sh", str(listening.fileno()), str(place.bin / "xserver-http"), place.socket],
                              pass_fds=[listening.fileno()]) as process:
            try:
                # The connection waits in the socket until the process answers.
                page = read(f"http://127.0.0.1:{listening.getsockname()[1]}/metrics")
                check(page.endswith("# EOF\n"), f"the page is there: {page}")
            finally:
                process.terminate()


@test
def the_page_has_each_metric_of_the_document(place):
    _, url = start_server(place)
    Client(place, 5, "continuous")
    wait_until(lambda: "xsched_process_queues{" in read(url), "a process is there")
    page = read(url, accept="text/plain")
    for name in re.findall(r"^\| `(xsched_\w+)`", (PROJECT / "docs/metrics.md").read_text(), re.M):
        check(re.search(rf"^(# TYPE )?{name}(_bucket)?[ {{]", page, re.M), f"{name} is on the page")


main(__doc__)
