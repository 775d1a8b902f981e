#!/usr/bin/env python3
"""Tasks, actors, jobs and deployments of a real Ray under XSched, on three nodes (processes) of this machine.

  ray_cluster.py --bin FOLDER --lib FOLDER [TEST…]
"""
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/integration"))
from harness import check, main, test, wait_until  # noqa: E402

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from ray.exceptions import RayError  # noqa: E402

PLUGIN = '[{"class": "xsched.ray.XSchedPlugin"}]'
URGENT, BATCH = {"priority": 10}, {"priority": -10}


class Nodes:
    """A cluster of three nodes, and a server of XSched. `with Nodes(place) as nodes:`"""

    def __init__(self, place):
        self.place = place
        # Ray's nodes pass this on to their workers, and look for xsched in PATH.
        os.environ.update(place.env, RAY_RUNTIME_ENV_PLUGINS=PLUGIN, PYTHONPATH=str(ROOT / "python"), RAY_ENABLE_UV_RUN_RUNTIME_ENV="0",
                          PATH=f"{place.bin}:{os.environ['PATH']}")
        for name in [name for name in os.environ if name.startswith("XSCHED_AUTO_")] + ["XSCHED_SCHEDULER"]:
            os.environ.pop(name, None)

    def __enter__(self):
        self.place.start_server()
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": True, "dashboard_port": 0})
        self.others = [self.cluster.add_node(num_cpus=2, resources={f"node{i}": 1, "other": 1}) for i in (1, 2)]
        ray.init(address=self.cluster.address, log_to_driver=False)
        return self

    def __exit__(self, *_):
        ray.shutdown()
        self.cluster.shutdown()

    def priorities(self):
        return sorted(queue["priority"] for queue in self.place.queues())


@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
class Worker:
    """Has a program that puts work on the device until the worker ends."""

    def __init__(self):
        self.program = None

    def work(self):
        self.program = subprocess.Popen(["xsched-latency-task", "--continuous", "--kernel-ms", "2", "--loops-per-ms", "20000",
                                         "--seconds", "300"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.node()

    @staticmethod
    def node():
        return ray.get_runtime_context().get_node_id()

    @staticmethod
    def hints():
        return {name: value for name, value in os.environ.items() if name.startswith("XSCHED_AUTO_XQUEUE_")}


@test
def actors_have_the_priorities_of_their_runtime_environments(place):
    with Nodes(place) as nodes:
        urgent = Worker.options(runtime_env={"xsched": URGENT}, resources={"node1": 0.1}).remote()
        batch = Worker.options(runtime_env={"xsched": BATCH}, resources={"node2": 0.1}).remote()
        check(ray.get(batch.work.remote()) != ray.get(urgent.work.remote()), "they are on two nodes")
        wait_until(lambda: nodes.priorities() == [-10, 10], lambda: f"both are scheduled: {place.queues()}", 60)
        wait_until(lambda: {queue["priority"]: queue["state"] for queue in place.queues()} == {10: "run", -10: "held"},
                   lambda: f"the urgent one holds the other: {place.queues()}", 20)
        ray.kill(urgent)
        wait_until(lambda: [queue["state"] for queue in place.queues() if queue["priority"] == -10] == ["run"],
                   "the other goes on when the urgent one is gone", 20)
        plain = Worker.remote()
        check(ray.get(plain.hints.remote()) == {}, "a worker without the field has no hint")


@test
def an_actor_whose_node_ends_has_its_hints_on_the_next_one(place):
    with Nodes(place) as nodes:
        actor = Worker.options(runtime_env={"xsched": {"priority": 7, "weight": 300}}, resources={"other": 0.1}).remote()
        first = ray.get(actor.work.remote())
        wait_until(lambda: nodes.priorities() == [7], lambda: f"it is scheduled: {place.queues()}", 60)
        node = next(node for node in nodes.others if node.node_id == first)
        nodes.cluster.remove_node(node, allow_graceful=False)
        end = time.monotonic() + 90
        second = first
        while second == first and time.monotonic() < end:
            try:
                second = ray.get(actor.node.remote(), timeout=30)
            except RayError:
                time.sleep(1)
        check(second != first, "it runs on another node")
        check(ray.get(actor.hints.remote()) == {"XSCHED_AUTO_XQUEUE_PRIORITY": "7", "XSCHED_AUTO_XQUEUE_WEIGHT": "300"}, "with its hints")


@test
def a_job_gives_its_hints_to_what_it_starts(place):
    with Nodes(place):
        script = pathlib.Path(place.folder) / "job.py"
        script.write_text("import os, ray\nray.init()\n@ray.remote\ndef hint():\n    return os.environ.get('XSCHED_AUTO_XQUEUE_PRIORITY')\n"
                          "print('hint:', ray.get(hint.remote()))\n")
        address = ray._private.worker.global_worker.node.webui_url
        done = subprocess.run([pathlib.Path(sys.executable).parent / "ray", "job", "submit", "--address", f"http://{address}", "--runtime-env-json",
                               '{"xsched": {"priority": 5}}', "--", sys.executable, str(script)],
                              capture_output=True, text=True, timeout=180, check=False)
        check("hint: 5" in done.stdout, done.stdout + done.stderr)


@test
def a_deployment_of_serve_has_the_hints_of_its_actors(place):
    @serve.deployment(ray_actor_options={"num_cpus": 0.5, "runtime_env": {"xsched": URGENT}})
    class Model:
        def __call__(self):
            return os.environ.get("XSCHED_AUTO_XQUEUE_PRIORITY")

    with Nodes(place):
        try:
            handle = serve.run(Model.bind(), route_prefix=None)
            check(handle.remote().result(timeout_s=120) == "10", "its replicas are urgent")
        finally:
            serve.shutdown()


@test
def a_value_that_is_wrong_is_an_error_of_the_task_and_says_what_is_wrong(place):
    @ray.remote(max_retries=0)
    def task():
        return 1

    with Nodes(place):
        for wrong, said in (({"priority": 1000}, "--priority"), ({"prio": 1}, "no key 'prio'")):
            try:
                ray.get(task.options(runtime_env={"xsched": wrong}).remote(), timeout=120)
                check(False, f"{wrong} is refused")
            except RayError as error:
                check(said in str(error), f"{error} says {said}")


if __name__ == "__main__":
    main(__doc__)
