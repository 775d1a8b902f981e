#!/usr/bin/env python3
"""Metrics of two servers, which stand for two machines, in a Prometheus of the site: with the configurations of docs/deploy/fleet.md. Only
addresses and periods differ, because all is on this machine.

  metrics_of_nodes.py --bin FOLDER --lib FOLDER [TEST…]
"""
import argparse
import contextlib
import json
import pathlib
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(PROJECT / "tests/integration"), str(PROJECT / "tests/deploy")]
from harness import Client, Place, check, main, test, wait_until  # noqa: E402
from page import block_with  # noqa: E402
from prometheus import Prometheus, program, start_server  # noqa: E402

RULES = PROJECT / "packaging/prometheus/xsched.rules.yml"
METRICS = "127.0.0.1:9470"
AGENT = "--enable-feature=agent"


def replaced(text, old, new):
    check(old in text, f"the page has {old}: {text}")
    return text.replace(old, new)


@contextlib.contextmanager
def machine(place):
    """Another one, with a server of its own."""
    other = Place(argparse.Namespace(bin=place.bin, lib=place.lib))
    try:
        yield other
    finally:
        other.close()


def site(place, configuration, *options):
    """The Prometheus of the site, with the alerts."""
    return Prometheus(pathlib.Path(place.folder) / "site", f"rule_files: [{RULES}]\n{configuration}", *options)


def clients_of(prometheus, instances):
    """How many clients each machine's server has."""
    found = prometheus.values("xsched_server_clients")
    check({labels["instance"] for labels, _ in found} <= set(instances), f"the machines: {found}")
    return {labels["instance"]: value for labels, value in found}


@test
def the_metrics_of_each_machine_have_its_name_as_instance(place):
    program("prometheus")
    with machine(place) as other, contextlib.ExitStack() as open_ones:
        places, nodes, ports = (place, other), [], []
        for each in places:
            port, _ = start_server(each)
            ports.append(port)
            configuration = replaced(block_with("fleet", "static_configs", "remote_write"), METRICS, f"127.0.0.1:{port}")
            nodes.append(open_ones.enter_context(Prometheus(pathlib.Path(each.folder) / "node", configuration)))
        first, second = (node.at for node in nodes)
        # The urgent one leaves time for the other one.
        programs = [Client(place, 5, "task", seconds=120), Client(place, 0, "continuous", seconds=120)]
        programs.append(Client(other, 0, "continuous", seconds=120))

        machines = replaced(replaced(block_with("fleet", '"targets"'), "gpu7:9090", first), "gpu8:9090", second)
        check(json.loads(machines)[0]["targets"] == [first, second], machines)
        (pathlib.Path(place.folder) / "site").mkdir()
        (pathlib.Path(place.folder) / "site/nodes.json").write_text(machines, encoding="utf-8")
        prometheus = open_ones.enter_context(site(place, block_with("fleet", "/federate")))

        wait_until(lambda: clients_of(prometheus, (first, second)) == {first: 2, second: 1},
                   lambda: f"two clients and one: {prometheus.values('xsched_server_clients')}", 30)
        for node, port, client in zip((first, first, second), (ports[0], ports[0], ports[1]), programs):
            query = f'xsched_process_device_time_seconds_total{{pid="{client.process.pid}"}}'
            wait_until(lambda query=query: (prometheus.value(query) or 0) > 0, f"its device time arrives: {query}", 30)
            [(labels, _)] = prometheus.values(query)
            check((labels["job"], labels["instance"], labels["exported_instance"]) == ("xsched", node, f"127.0.0.1:{port}"), f"its labels: {labels}")
            check(labels["Hostname"] and labels["device"], f"and those of the server: {labels}")
        held = 'sum by (instance) (xsched_user_preemptions_total{priority="0"} > 0)'
        prometheus.wait_for(held)
        check([labels for labels, _ in prometheus.values(held)] == [{"instance": first}], f"machines are not added up: {prometheus.values(held)}")

        check(not prometheus.values('ALERTS{alertname="XSchedServerDown"}'), "both servers are up")
        other.server.kill()
        other.server.wait()
        prometheus.wait_for('ALERTS{alertname="XSchedServerDown"}')
        down = prometheus.values('ALERTS{alertname="XSchedServerDown"}')
        check([labels["instance"] for labels, _ in down] == [second], f"the alert names the machine: {down}")


@test
def a_machine_without_an_open_port_sends_its_metrics(place):
    program("prometheus")
    with machine(place) as other, contextlib.ExitStack() as open_ones:
        prometheus = open_ones.enter_context(site(place, "", "--web.enable-remote-write-receiver"))
        for name, each in (("gpu7", place), ("gpu8", other)):
            port, _ = start_server(each)
            configuration = replaced(block_with("fleet", "remote_write"), METRICS, f"127.0.0.1:{port}")
            configuration = replaced(replaced(configuration, "prometheus.example:9090", prometheus.at), "gpu7", name)
            open_ones.enter_context(Prometheus(pathlib.Path(each.folder) / "node", configuration, AGENT))
        Client(place, 0, "continuous", seconds=120)
        wait_until(lambda: clients_of(prometheus, ("gpu7", "gpu8")) == {"gpu7": 1, "gpu8": 0},
                   lambda: f"one client and none: {prometheus.values('xsched_server_clients')}", 30)
        other.server.kill()
        other.server.wait()
        prometheus.wait_for('ALERTS{alertname="XSchedServerDown"}')
        down = prometheus.values('ALERTS{alertname="XSchedServerDown"}')
        check([labels["instance"] for labels, _ in down] == ["gpu8"], f"the alert names the machine: {down}")


main(__doc__)
