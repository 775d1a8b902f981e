#!/usr/bin/env python3
"""The image of docs/deploy/kubernetes.md, run as the chart says: containers of Podman with the commands, mounts and rights of the pod, a fake
kubelet and a fake API server. run.sh says what it needs.

  image.py --build FOLDER --image IMAGE
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from harness import Client, Place, check, wait_until  # noqa: E402
from fake_cluster import HAS_GROUPS, NODE, ApiServer, in_pod, remove_groups, uid_of  # noqa: E402
from manifests import rendered  # noqa: E402

SHARE = 30
# Not more descriptors and processes than this machine may allow; runc, because crun refuses hybrid control groups.
PODMAN = ("podman", "--runtime", "runc")
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
# The one context that the chart gives its containers, and what it is for Podman. Podman would otherwise leave /tmp and /run writable.
CONTEXT = {"runAsUser": 0, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
CONFINED = ("--user", "0", "--security-opt", "no-new-privileges", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all")


def podman(*arguments, check_it=True):
    done = subprocess.run([*PODMAN, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)
    check(done.returncode == 0 or not check_it, f"podman {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
    return done


class Pod:
    """The chart's pod on this machine, whose folders are those of `place`."""

    def __init__(self, place, image, api):
        self.api = api
        self.machine = pathlib.Path(place.folder) / "machine"
        self.tenants = pathlib.Path(place.folder) / "tenants"
        objects = rendered({"image": image, "devices": ["cpu0"]})
        [daemons] = [item for item in objects if item["kind"] == "DaemonSet"]
        [files] = [item for item in objects if item["kind"] == "ConfigMap"]
        self.spec = daemons["spec"]["template"]["spec"]
        self.tenants.mkdir()
        for name, text in files["data"].items():
            (self.tenants / name).write_text(text, encoding="utf-8")
        self.folders = {volume["name"]: self.folder_of(volume) for volume in self.spec["volumes"]}
        self.names = {}

    def folder_of(self, volume):
        if "configMap" in volume:
            return self.tenants
        if "projected" in volume:
            return self.api.account
        path = volume["hostPath"]["path"]
        if path == "/dev":
            return pathlib.Path(path)
        folder = self.machine / path[1:]
        folder.mkdir(parents=True)
        return folder

    def options(self, container):
        check(container["securityContext"] == CONTEXT and self.spec["hostPID"], f"its rights: {container}")
        for mount in container["volumeMounts"]:
            yield f"--volume={self.folders[mount['name']]}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}"
        for variable in container.get("env", []):
            check(variable["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}, f"its variable: {variable}")
            yield f"--env={variable['name']}={NODE}"
        # Those with a token reach the API server, as the kubelet tells it to each container. The others have no network.
        if any(mount["name"] == "account" for mount in container["volumeMounts"]):
            host, port = self.api.url.removeprefix("https://").split(":")
            yield from ("--network=host", f"--env=KUBERNETES_SERVICE_HOST={host}", f"--env=KUBERNETES_SERVICE_PORT={port}")
        else:
            yield "--network=none"

    def run(self, container, *options):
        name = f"xsched-test-{os.getpid()}-{container['name']}"
        self.names[container["name"]] = name
        command = container["command"]
        podman("run", "--name", name, *LIMITS, *CONFINED, "--pid", "host", *self.options(container), *options, "--entrypoint", command[0],
               container["image"], *command[1:])

    def start(self):
        for container in self.spec["initContainers"]:
            self.run(container)
        for container in self.spec["containers"]:
            self.run(container, "--detach")

    def log(self, name):
        done = podman("logs", self.names[name], check_it=False)
        return done.stdout + done.stderr

    def check_rights(self):
        for name in (container["name"] for container in self.spec["containers"]):
            pid = podman("inspect", "--format", "{{.State.Pid}}", self.names[name]).stdout.strip()
            check(pid != "0", f"{name} runs: {self.log(name)}")
            status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines())
            check({status[key].strip("0") for key in ("CapEff", "CapPrm", "CapBnd")} == {""} and status["NoNewPrivs"] == "1", f"{name}: {status}")
            tried = podman("exec", self.names[name], "touch", "/tried", check_it=False)
            check(tried.returncode != 0 and "Read-only file system" in tried.stderr, f"the root of {name}: {tried}")

    def stop(self):
        for name in reversed(self.spec["containers"]):
            podman("stop", "--time", "10", self.names[name["name"]])
            code = podman("inspect", "--format", "{{.State.ExitCode}}", self.names[name["name"]]).stdout.strip()
            check(code == "0", f"{name['name']} ends in order: {code} {self.log(name['name'])}")

    def close(self):
        if self.names:
            podman("rm", "--force", "--time", "0", *self.names.values(), check_it=False)


def given_to_a_container(pod, place):
    """What the program of a container with a share has, with paths of this machine."""
    kubelet = subprocess.run([place.bin / "fake_kubelet", pod.folders["kubelet"], str(SHARE)], capture_output=True, text=True, check=False, timeout=60)
    check(kubelet.returncode == 0, f"{kubelet.stderr}{pod.log('devices')}")
    names = [device["name"] for device in json.loads(kubelet.stdout)["cdiDevices"]]
    specification = json.loads((pod.folders["cdi"] / "xsched-share.json").read_text(encoding="utf-8"))
    check(names == [f"{specification['kind']}={SHARE}"], f"the device of its share: {names}")
    [device] = [device for device in specification["devices"] if device["name"] == str(SHARE)]
    variables, mounts = {}, {}
    for edits in (specification["containerEdits"], device["containerEdits"]):
        variables |= dict(entry.split("=", 1) for entry in edits.get("env", []))
        mounts |= {mount["containerPath"]: f"{pod.machine}{mount['hostPath']}" for mount in edits.get("mounts", [])}
    for inside, outside in sorted(mounts.items(), reverse=True):
        check(pathlib.Path(outside).exists(), f"the machine has {outside}")
        variables = {name: value.replace(inside, outside) for name, value in variables.items()}
    return variables


def queue_of(place, pid):
    return next((queue for queue in place.queues() if queue["pid"] == pid), {})


def program_with_a_share(pod, place):
    command = [place.bin / "xsched-latency-task", "--continuous", "--seconds", "120"]
    with subprocess.Popen(command, env={**os.environ, **given_to_a_container(pod, place)}, stdout=subprocess.DEVNULL) as program:
        try:
            wait_until(lambda: queue_of(place, program.pid), lambda: f"it is scheduled: {pod.log('server')}", 30)
            queue = queue_of(place, program.pid)
            check((queue["utilization"], queue["weight"]) == (SHARE, SHARE), f"its share: {queue}")
        finally:
            program.kill()


def program_with_a_priority(pod, place, api):
    api.add_class("gpu-urgent", "10")
    api.add_pod(uid_of("a"), priority_class="gpu-urgent")
    program = Client(place, 0, "continuous", seconds=120, prefix=in_pod(uid_of("a")))
    wait_until(lambda: queue_of(place, program.process.pid).get("priority") == 10, lambda: f"{place.queues()} {pod.log('pods')}", 90)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--image", required=True)
    options = parser.parse_args()
    place = Place(argparse.Namespace(bin=options.build / "bin", lib=options.build / "lib"))
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(place.close)
        api = ApiServer(place.folder)
        at_the_end.callback(api.close)
        pod = Pod(place, options.image, api)
        place.socket = str(pod.folders["socket"] / "xserver.sock")
        place.env["XSCHED_SOCKET"] = place.socket
        at_the_end.callback(pod.close)
        pod.start()
        wait_until(lambda: place.tool("policy", "show").returncode == 0, lambda: f"the server answers: {pod.log('server')}", 30)
        check("EEVDF" in place.tool("policy", "show").stdout, f"the chart's policy: {place.tool('policy', 'show').stdout}")
        pod.check_rights()
        program_with_a_share(pod, place)
        print("passed: server and devices of the image give a program its share")
        if HAS_GROUPS:
            at_the_end.callback(remove_groups)
            at_the_end.callback(lambda: [client.end() for client in place.clients])
            program_with_a_priority(pod, place, api)
            print("passed: pods of the image gives a program the priority of its pod")
        else:
            print("skipped: control groups of version 1 cannot be made here, so no priority of a pod")
        pod.stop()
        print("passed: they end in order")


main()
