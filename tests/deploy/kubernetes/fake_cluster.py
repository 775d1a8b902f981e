"""What an agent meets in a cluster, without one: an API server that checks what it is asked, and control groups of pods."""
import contextlib
import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
from harness import check  # noqa: E402

NODE = "node-1.example"
TOKEN = "token-of-the-agent"
GROUPS = pathlib.Path("/sys/fs/cgroup/freezer/kubepods")
HAS_GROUPS = os.geteuid() == 0 and os.access(GROUPS.parent, os.W_OK) and (GROUPS.parent / "cgroup.procs").exists()
PODS = "/api/v1/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class ApiServer:
    """Over TLS. `faults` are requests that a real one would not have understood or allowed."""

    def __init__(self, folder):
        self.account = pathlib.Path(folder) / "account"
        self.account.mkdir()
        (self.account / "token").write_text(TOKEN)
        key = self.account / "key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=fake", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(self.account / "ca.crt")],
                       check=True, capture_output=True)
        self.answers = {PODS: [], CLASSES: []}
        self.claims = {}
        self.token = TOKEN
        self.faults = []
        self.requests = []
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = api.answer(self.path, self.headers)
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.account / "ca.crt", key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self.server.server_port}"

    def answer(self, target, headers):
        url = urllib.parse.urlsplit(target)
        query = urllib.parse.parse_qs(url.query, strict_parsing=bool(url.query))
        self.requests.append(url.path)
        if headers["Authorization"] != f"Bearer {self.token}":
            return 401, {"kind": "Status", "code": 401}
        if url.path in self.claims and not query and headers["Accept"] == "application/json":
            return 200, self.claims[url.path]
        wanted = {"resourceVersion": ["0"]}
        if url.path == PODS:
            wanted["fieldSelector"] = [f"spec.nodeName={NODE}"]
        if url.path not in self.answers or query != wanted or headers["Accept"] != "application/json":
            self.faults.append((target, dict(headers)))
            return 404, {"kind": "Status", "code": 404}
        return 200, {"kind": "List", "apiVersion": "v1", "items": self.answers[url.path]}

    def add_class(self, name, priority):
        self.answers[CLASSES].append({"metadata": {"name": name, "annotations": {"xsched.org/priority": priority}}, "value": 1000})

    def add_pod(self, uid, annotation=None, priority_class=None, variables=None):
        self.answers[PODS] = [pod for pod in self.answers[PODS] if pod["metadata"]["uid"] != uid]
        metadata = {"uid": uid, "namespace": "lab", "name": f"pod-{uid[:1]}"}
        if annotation is not None:
            metadata["annotations"] = {"xsched.org/priority": annotation}
        spec = {"nodeName": NODE, "containers": [{"name": "c", "env": [{"name": name, "value": value} for name, value in (variables or {}).items()]}]}
        if priority_class:
            spec["priorityClassName"] = priority_class
        self.answers[PODS].append({"metadata": metadata, "spec": spec})

    def make_mirror(self, uid, static_uid):
        """This pod is the mirror of a static pod, whose control group has the other uid."""
        pod = next(pod for pod in self.answers[PODS] if pod["metadata"]["uid"] == uid)
        pod["metadata"].setdefault("annotations", {})["kubernetes.io/config.mirror"] = static_uid

    def add_claim(self, uid, name, priority):
        """A ResourceClaim that was made for this pod by a template."""
        pod = next(pod for pod in self.answers[PODS] if pod["metadata"]["uid"] == uid)
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "template"}]
        pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
        parameters = {"apiVersion": "gpu.xsched.org/v1", "kind": "ShareParameters", "priority": priority}
        self.claims[f"/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/{name}"] = {
            "kind": "ResourceClaim", "metadata": {"uid": f"uid-of-{name}"}, "status": {"allocation": {"devices": {
                "results": [{"request": "share", "driver": "gpu.xsched.org", "pool": NODE, "device": "gpu-a-0-of-10"}],
                "config": [{"source": "FromClaim", "opaque": {"driver": "gpu.xsched.org", "parameters": parameters}}]}}}}

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        check(self.faults == [], f"the API server understood all requests: {self.faults}")


def uid_of(letter):
    return f"{letter * 8}-0000-4000-8000-{'0' * 12}"


def in_pod(uid):
    """What starts a program as in a container of the pod: in a control group that the kubelet has made."""
    group = GROUPS / f"pod{uid}" / ("c" * 64)
    group.mkdir(parents=True, exist_ok=True)
    return ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]


def remove_groups():
    for group in sorted(GROUPS.glob("pod*/*"), reverse=True) + sorted(GROUPS.glob("pod*")) + [GROUPS]:
        with contextlib.suppress(OSError):
            group.rmdir()
