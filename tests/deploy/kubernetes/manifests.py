#!/usr/bin/env python3
"""The Helm chart, rendered by Helm's own library, and the Kustomize base, by kubectl: valid by Kubernetes' schemas, the same objects, and
with no more rights than they need. Needs PyYAML, kubernetes-validate and helm-python-sdk of PyPI: see run.sh.

  manifests.py XSCHED | --write     XSCHED: a build's xsched; --write: makes base/xsched.yaml and claims/xsched.yaml from the chart
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
# The Kubernetes versions whose schemas are checked, by the kinds that there are.
VERSIONS = ("1.28", "1.34", "1.37")
SINCE = {"DeviceClass": "1.34", "ResourceClaim": "1.34", "ResourceClaimTemplate": "1.34", "ValidatingAdmissionPolicy": "1.30",
         "ValidatingAdmissionPolicyBinding": "1.30"}
# Each way of offering GPUs: its Kustomize folder, the container that offers them, and what this container and its account need.
OFFERS = {
    "shares": {
        "folder": "base", "container": "devices", "kubelet": {"/var/lib/kubelet/device-plugins"}, "token": ["pods"],
        "rules": {("pods", "list"), ("priorityclasses", "list")},
    },
    "claims": {
        "folder": "claims", "container": "claims", "token": ["claims", "pods"],
        "kubelet": {"/var/lib/kubelet/plugins/gpu.xsched.org", "/var/lib/kubelet/plugins_registry"},
        "rules": {("pods", "list"), ("priorityclasses", "list"), ("resourceclaims", "get"), ("nodes", "get"), ("resourceslices", "list"),
                  ("resourceslices", "create"), ("resourceslices", "update"), ("resourceslices", "delete")},
    },
}
HEADING = "# Made from the chart: tests/deploy/kubernetes/manifests.py --write\n"
MACHINE_FOLDERS = {"/opt/xsched", "/run/xsched", "/var/run/cdi", "/dev"}


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


def since(item):
    return "1.34" if "resourceClaims" in item.get("spec", {}) else SINCE.get(item["kind"], VERSIONS[0])


def check_schemas(objects):
    for item in objects:
        for version in VERSIONS:
            if version >= since(item):
                kubernetes_validate.validate(item, version, strict=True)


def check_rights(objects, offer):
    by_kind = {item["kind"]: item for item in objects}
    rules = by_kind["ClusterRole"]["rules"]
    check({(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]} == offer["rules"],
          f"the agent may do what it does, and nothing else: {rules}")
    spec = by_kind["DaemonSet"]["spec"]["template"]["spec"]
    check(spec["automountServiceAccountToken"] is False and not spec.get("hostNetwork") and not spec.get("hostIPC"), "no token by default, no network")
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    check(set(volumes.values()) == MACHINE_FOLDERS | offer["kubelet"], f"the machine's folders: {volumes}")
    for container in spec["initContainers"] + spec["containers"]:
        context = container["securityContext"]
        check(context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"] and context["capabilities"] == {"drop": ["ALL"]}
              and "privileged" not in context, f"{container['name']} has no rights: {context}")
    mounts = {container["name"]: {mount["name"] for mount in container["volumeMounts"]} for container in spec["containers"]}
    check([name for name in mounts if "account" in mounts[name]] == offer["token"], f"who has the token: {mounts}")
    of_kubelet = {name for name, path in volumes.items() if path in offer["kubelet"]}
    check([name for name in mounts if of_kubelet & mounts[name]] == [offer["container"]], f"one has the kubelet's folders: {mounts}")
    check([name for name in mounts if "device-files" in mounts[name]] == [offer["container"]], f"one sees the device files: {mounts}")
    commands = {container["name"]: container["command"] for container in spec["containers"]}
    check("--dev=/machine/dev" in commands[offer["container"]], f"and is told where they are: {commands}")
    check(("--claims" in commands["pods"]) == ("claims" in commands), f"claims count where the account may read them: {commands}")
    writable = {(container["name"], mount["name"]) for container in spec["containers"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    check(writable == {("server", "socket")} | {(offer["container"], name) for name in of_kubelet | {"cdi"}}, f"what is written to: {writable}")


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
    check(commands["devices"][1:] == ["devices", "--dev=/machine/dev", "--without-cdi", "--device=cpu0,file=/dev/cpu"], f"values reach the agent: {commands}")
    check(commands["pods"][-2:] == ["--max-priority", "5"], f"the cap as well: {commands}")
    claims = {"offer": "claims", "devices": ["cpu0"], "claims": {"slots": 4}}
    for more, division in (({}, "--slots=4"), ({"byCapacity": True}, "--by-capacity")):
        of_claims = next(item for item in rendered({**claims, "claims": {**claims["claims"], **more}}) if item["kind"] == "DaemonSet")
        command = next(container["command"] for container in of_claims["spec"]["template"]["spec"]["containers"] if container["name"] == "claims")
        check(command[1:] == ["claims", "--dev=/machine/dev", division, "--device=cpu0"], f"and those of claims: {command}")
    check(spec["nodeSelector"] == {"gpu": "yes"} and "tolerations" not in spec and spec["containers"][0]["image"] == "other:1", f"and the pod: {spec}")


def check_base(folder, objects):
    base = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    check(base.returncode == 0, f"kubectl: {base.stderr}")
    all_of_base = list(yaml.safe_load_all(base.stdout))
    of_base = [item for item in all_of_base if item["kind"] != "Namespace"]
    check(sorted(of_base, key=key) == sorted(objects, key=key), f"{folder} is what the chart gives: manifests.py --write")
    check_schemas(all_of_base)


def main(arguments):
    if not shutil.which("kubectl"):
        sys.exit("kubectl is not there (Debian's kubernetes-client)")
    for name, offer in OFFERS.items():
        folder = FOLDER / offer["folder"]
        objects = rendered({"offer": name})
        if arguments == ["--write"]:
            (folder / "xsched.yaml").write_text(HEADING + yaml.safe_dump_all(objects, sort_keys=False, width=120), encoding="utf-8")
            continue
        check_schemas(objects)
        check_rights(objects, offer)
        check_tenants(objects, *arguments)
        check_base(folder, objects)
        print(f"passed: {len(objects)} objects that offer {name}, by the schemas of Kubernetes {', '.join(VERSIONS)}")
    if arguments == ["--write"]:
        return
    check_values()
    report = helm_python.chart.lint(str(FOLDER / "chart"), strict=True, namespace="xsched")
    check([message for message in report["messages"] if message["severity"] > 1] == report["errors"] == [], f"Helm finds no fault: {report}")
    for file in (FOLDER / "examples").glob("*.yaml"):
        check_schemas(list(yaml.safe_load_all(file.read_text())))


main(sys.argv[1:])
