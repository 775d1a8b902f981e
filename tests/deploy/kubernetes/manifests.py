#!/usr/bin/env python3
"""The Helm chart, rendered by Helm's own library, and the Kustomize folders, by kubectl: valid by Kubernetes' schemas, the same objects, and
with no more rights than they need. Needs PyYAML and kubernetes-validate of PyPI; if not --short, also helm-python-sdk and kubectl: see run.sh.

  manifests.py XSCHED [--short]     XSCHED: a build's xsched; --short: without the chart and kubectl, as in CI
  manifests.py --write              makes base/xsched.yaml and claims/xsched.yaml from the chart
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
try:
    import kubernetes_validate
    import yaml
except ImportError as error:
    print(f"skipped: {error}: scripts/fetch-kubernetes-schemas.sh fetches it")
    sys.exit(SKIPPED)
try:
    import helm_python  # 75 MB, which CI does not have
except ImportError:
    helm_python = None

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from page import block_with  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "kubernetes"
# The Kubernetes versions whose schemas are checked, by the kinds that there are.
VERSIONS = ("1.28", "1.34", "1.37")
SINCE = {"DeviceClass": "1.34", "ResourceClaim": "1.34", "ResourceClaimTemplate": "1.34", "ValidatingAdmissionPolicy": "1.30",
         "ValidatingAdmissionPolicyBinding": "1.30"}
# Each way of offering GPUs: its Kustomize folder, the container that offers them, and what this container and its account need.
OFFERS = {
    "shares": {
        "folder": "base", "container": "devices", "kubelet": {"/var/lib/kubelet/device-plugins"}, "token": ["pods"],
        "registers_in": "/var/lib/kubelet/device-plugins",
        "rules": {("pods", "list"), ("priorityclasses", "list")},
    },
    "claims": {
        "folder": "claims", "container": "claims", "token": ["claims", "pods"],
        "kubelet": {"/var/lib/kubelet/plugins/gpu.xsched.org", "/var/lib/kubelet/plugins_registry"},
        "registers_in": "/var/lib/kubelet/plugins_registry",
        "rules": {("pods", "list"), ("priorityclasses", "list"), ("resourceclaims", "get"), ("nodes", "get"), ("resourceslices", "list"),
                  ("resourceslices", "create"), ("resourceslices", "update"), ("resourceslices", "delete")},
    },
}
HEADING = "# Made from the chart: tests/deploy/kubernetes/manifests.py --write\n"
POD_RESOURCES = "/var/lib/kubelet/pod-resources"
MACHINE_FOLDERS = {"/opt/xsched", "/run/xsched", "/var/run/cdi", "/dev", POD_RESOURCES}


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


def check_schema(item, version):
    try:
        kubernetes_validate.validate(item, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        sys.exit(f"failed: {key(item)} by the schemas of Kubernetes {version}: {error.message} at {list(error.path)}")


def check_schemas(objects):
    for item in objects:
        for version in VERSIONS:
            if version >= since(item):
                check_schema(item, version)


def check_rights(objects, offer):
    by_kind = {item["kind"]: item for item in objects}
    rules = by_kind["ClusterRole"]["rules"]
    check({(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]} == offer["rules"],
          f"the agent may do what it does, and nothing else: {rules}")
    spec = by_kind["DaemonSet"]["spec"]["template"]["spec"]
    check(spec["automountServiceAccountToken"] is False and not spec.get("hostNetwork") and not spec.get("hostIPC"), "no token by default, no network")
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    check(set(volumes.values()) == MACHINE_FOLDERS | offer["kubelet"], f"the machine's folders: {volumes}")
    types = {volume["hostPath"]["path"]: volume["hostPath"]["type"] for volume in spec["volumes"] if "hostPath" in volume}
    required = {path for path, kind in types.items() if kind == "Directory"}
    check(required == {"/dev", offer["registers_in"]}, f"the pod does not start without these: {required}")
    for container in spec["initContainers"] + spec["containers"]:
        context = container["securityContext"]
        check(context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"] and context["capabilities"] == {"drop": ["ALL"]}
              and "privileged" not in context, f"{container['name']} has no rights: {context}")
    mounts = {container["name"]: {mount["name"] for mount in container["volumeMounts"]} for container in spec["containers"]}
    check([name for name in mounts if "account" in mounts[name]] == offer["token"], f"who has the token: {mounts}")
    of_kubelet = {name for name, path in volumes.items() if path in offer["kubelet"]}
    check([name for name in mounts if of_kubelet & mounts[name]] == [offer["container"]], f"one has the kubelet's folders: {mounts}")
    of_lists = {name for name, path in volumes.items() if path == POD_RESOURCES}
    check([name for name in mounts if of_lists & mounts[name]] == ["pods"], f"one sees the kubelet's lists of pods: {mounts}")
    check([name for name in mounts if "device-files" in mounts[name]] == [offer["container"]], f"one sees the device files: {mounts}")
    commands = {container["name"]: container["command"] for container in spec["containers"]}
    check("--dev=/machine/dev" in commands[offer["container"]], f"and is told where they are: {commands}")
    check(("--claims" in commands["pods"]) == ("claims" in commands), f"claims count where the account may read them: {commands}")
    writable = {(container["name"], mount["name"]) for container in spec["containers"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    check(writable == {("server", "socket")} | {(offer["container"], name) for name in of_kubelet | {"cdi"}}, f"what is written to: {writable}")


def tenants_of(objects):
    [text] = [item["data"]["tenants.toml"] for item in objects if (item["kind"], item["metadata"]["name"]) == ("ConfigMap", "xsched-tenants")]
    return text


def check_tenants(objects, xsched):
    """The server's own check of the file."""
    text = tenants_of(objects)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([xsched, "tenants", "--check", file.name], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"tenants.toml is valid: {done.stdout}{done.stderr}")


def digest_of(objects):
    return next(item for item in objects if item["kind"] == "DaemonSet")["spec"]["template"]["metadata"]["annotations"]["xsched.org/tenants"]


def resources_of(folder):
    """What Kustomize makes of a folder that only names resources."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    check(set(kustomization) == {"apiVersion", "kind", "resources"}, f"{folder} only names resources: {kustomization}")
    for name in kustomization["resources"]:
        path = folder / name
        yield from resources_of(path) if path.is_dir() else yaml.safe_load_all(path.read_text(encoding="utf-8"))


def kustomized(folder):
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"kubectl: {done.stderr}")
    return list(yaml.safe_load_all(done.stdout))


def kubectl_knows_folders():
    """From 1.21 on. The one of Debian 12 is older."""
    if not shutil.which("kubectl"):
        return False
    done = subprocess.run(["kubectl", "version", "--client", "--output=json"], capture_output=True, text=True, check=False)
    version = yaml.safe_load(done.stdout)["clientVersion"]
    return (int(version["major"]), int(version["minor"].rstrip("+"))) >= (1, 21)


# docs/deploy/fleet.md has two ways to give the server another file of tenants. This one is an example.
SITES_TENANTS = FOLDER.parent / "tenants" / "tenants.toml"


def check_tenants_by_kustomize(xsched):
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(FOLDER, pathlib.Path(place) / "packaging" / "kubernetes")
        site = pathlib.Path(place) / "site"
        site.mkdir()
        shutil.copy(SITES_TENANTS, site / "tenants.toml")
        (site / "kustomization.yaml").write_text(block_with("fleet", "configMapGenerator"), encoding="utf-8")
        objects = kustomized(site)
    check(tenants_of(objects) == SITES_TENANTS.read_text(encoding="utf-8"), "the server has the file")
    check_schemas(objects)
    check_tenants(objects, xsched)
    print("passed: a site's file of tenants, by Kustomize")


def check_tenants_by_helm():
    check("--set-file tenants=tenants.toml" in block_with("fleet", "helm upgrade"), "the page sets this value")
    text = SITES_TENANTS.read_text(encoding="utf-8")
    objects = rendered({"tenants": text})
    check(tenants_of(objects) == text and digest_of(objects) != digest_of(rendered()), "the server has the file, and starts again")
    print("passed: a site's file of tenants, by Helm")


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


def check_folder(name, offer, xsched):
    """Returns its objects."""
    objects = list(resources_of(FOLDER / offer["folder"]))
    check_schemas(objects)
    of_agent = [item for item in objects if item["kind"] != "Namespace"]
    check_rights(of_agent, offer)
    check_tenants(of_agent, xsched)
    print(f"passed: {len(of_agent)} objects that offer {name}, by the schemas of Kubernetes {', '.join(VERSIONS)}")
    return objects


def check_kustomize(objects_by_offer, xsched):
    if not kubectl_knows_folders():
        print("skipped: kubectl 1.21 or later is not there")
        return
    for name, objects in objects_by_offer.items():
        check(sorted(objects, key=key) == sorted(kustomized(FOLDER / OFFERS[name]["folder"]), key=key), f"kubectl reads the same of {name}")
    check_tenants_by_kustomize(xsched)


def check_chart(objects_by_offer):
    for name, objects in objects_by_offer.items():
        of_agent = [item for item in objects if item["kind"] != "Namespace"]
        check(sorted(of_agent, key=key) == sorted(rendered({"offer": name}), key=key), f"{OFFERS[name]['folder']} is what the chart gives: manifests.py --write")
    check_tenants_by_helm()
    check_values()
    report = helm_python.chart.lint(str(FOLDER / "chart"), strict=True, namespace="xsched")
    check([message for message in report["messages"] if message["severity"] > 1] == report["errors"] == [], f"Helm finds no fault: {report}")
    print("passed: the chart gives the same objects")


def write():
    for name, offer in OFFERS.items():
        text = HEADING + yaml.safe_dump_all(rendered({"offer": name}), sort_keys=False, width=120)
        (FOLDER / offer["folder"] / "xsched.yaml").write_text(text, encoding="utf-8")


def main(xsched, *options):
    if xsched == "--write":
        write()
        return
    objects_by_offer = {name: check_folder(name, offer, xsched) for name, offer in OFFERS.items()}
    for file in (FOLDER / "examples").glob("*.yaml"):
        check_schemas(list(yaml.safe_load_all(file.read_text())))
    if "--short" not in options:
        check_kustomize(objects_by_offer, xsched)
        check_chart(objects_by_offer)


if __name__ == "__main__":
    main(*sys.argv[1:])
