#!/usr/bin/env python3
"""The Helm chart, rendered by Helm's own library, and the Kustomize base, by kubectl: valid by Kubernetes' schemas, the same objects, and
with no more rights than they need. Needs PyYAML, kubernetes-validate and helm-python-sdk of PyPI: see run.sh.

  manifests.py XSCHED | --write     XSCHED: a build's xsched; --write: makes base/xsched.yaml from the chart
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import helm_python
import kubernetes_validate
import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "kubernetes"
RENDERED = FOLDER / "base" / "xsched.yaml"
# The Kubernetes versions whose schemas are checked.
VERSIONS = ("1.28", "1.34", "1.37")
HEADING = "# Made from the chart: tests/deploy/kubernetes/manifests.py --write\n"
MACHINE_FOLDERS = {"/opt/xsched", "/run/xsched", "/var/lib/kubelet/device-plugins", "/var/run/cdi"}


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def rendered(values=None):
    """The objects of the chart."""
    with helm_python.Chart.load(str(FOLDER / "chart")) as chart:
        files = chart.render(values=values or {}, name="xsched", namespace="xsched")
    return [item for _, text in sorted(files.items()) for item in yaml.safe_load_all(text) if item]


def key(item):
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def check_schemas(objects):
    for item in objects:
        for version in VERSIONS:
            kubernetes_validate.validate(item, version, strict=True)


def check_rights(objects):
    by_kind = {item["kind"]: item for item in objects}
    rules = by_kind["ClusterRole"]["rules"]
    check(all(rule["verbs"] == ["list"] for rule in rules) and [rule["resources"] for rule in rules] == [["pods"], ["priorityclasses"]],
          f"the agent only lists pods and PriorityClasses: {rules}")
    spec = by_kind["DaemonSet"]["spec"]["template"]["spec"]
    check(spec["automountServiceAccountToken"] is False and not spec.get("hostNetwork") and not spec.get("hostIPC"), "no token by default, no network")
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    check(set(volumes.values()) == MACHINE_FOLDERS, f"the machine's folders: {volumes}")
    for container in spec["initContainers"] + spec["containers"]:
        context = container["securityContext"]
        check(context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"] and context["capabilities"] == {"drop": ["ALL"]}
              and "privileged" not in context, f"{container['name']} has no rights: {context}")
    mounts = {container["name"]: {mount["name"] for mount in container["volumeMounts"]} for container in spec["containers"]}
    check([name for name in mounts if "account" in mounts[name]] == ["pods"], f"one container has the token: {mounts}")
    check([name for name in mounts if "kubelet" in mounts[name]] == ["devices"], f"one has the kubelet's folder: {mounts}")
    writable = {(container["name"], mount["name"]) for container in spec["containers"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    check(writable == {("server", "socket"), ("devices", "kubelet"), ("devices", "cdi")}, f"what is written to: {writable}")


def check_tenants(objects, xsched):
    """The server's own check of the file."""
    text = next(item for item in objects if item["kind"] == "ConfigMap")["data"]["tenants.toml"]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([xsched, "tenants", "--check", file.name], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"tenants.toml is valid: {done.stdout}{done.stderr}")


def check_values():
    values = {"withoutCdi": True, "devices": ["cpu0,file=/dev/cpu"], "maxPriority": 5, "nodeSelector": {"gpu": "yes"}, "tolerations": [], "image": "other:1"}
    objects = rendered(values)
    check_schemas(objects)
    spec = next(item for item in objects if item["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    commands = {container["name"]: container["command"] for container in spec["containers"]}
    check(commands["devices"][1:] == ["devices", "--without-cdi", "--device=cpu0,file=/dev/cpu"], f"values reach the agent: {commands}")
    check(commands["pods"][-2:] == ["--max-priority", "5"], f"the cap as well: {commands}")
    check(spec["nodeSelector"] == {"gpu": "yes"} and "tolerations" not in spec and spec["containers"][0]["image"] == "other:1", f"and the pod: {spec}")


def main(arguments):
    objects = rendered()
    if arguments == ["--write"]:
        RENDERED.write_text(HEADING + yaml.safe_dump_all(objects, sort_keys=False, width=120), encoding="utf-8")
        return
    check_schemas(objects)
    check_rights(objects)
    check_tenants(objects, *arguments)
    check_values()
    report = helm_python.chart.lint(str(FOLDER / "chart"), strict=True, namespace="xsched")
    check([message for message in report["messages"] if message["severity"] > 1] == report["errors"] == [], f"Helm finds no fault: {report}")
    for file in (FOLDER / "examples").glob("*.yaml"):
        check_schemas(list(yaml.safe_load_all(file.read_text())))
    if not shutil.which("kubectl"):
        sys.exit("kubectl is not there (Debian's kubernetes-client)")
    base = subprocess.run(["kubectl", "kustomize", str(FOLDER / "base")], capture_output=True, text=True, check=False)
    check(base.returncode == 0, f"kubectl: {base.stderr}")
    of_base = [item for item in yaml.safe_load_all(base.stdout) if item["kind"] != "Namespace"]
    check(sorted(of_base, key=key) == sorted(objects, key=key), "the base is what the chart gives: manifests.py --write")
    check_schemas(list(yaml.safe_load_all(base.stdout)))
    print(f"passed: {len(objects)} objects of the chart and the base, by the schemas of Kubernetes {', '.join(VERSIONS)}")


main(sys.argv[1:])
