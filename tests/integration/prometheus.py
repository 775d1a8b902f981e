"""A real Prometheus, for the scripts that read a server's metrics with it."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from harness import skip, wait_until

# Where scripts/fetch-prometheus.sh puts the programs.
FETCHED = pathlib.Path(__file__).resolve().parents[2] / "build/prometheus"


def program(name):
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{FETCHED}")
    return found or skip(f"there is no {name}: scripts/fetch-prometheus.sh fetches it")


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def read(url, accept=None):
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def start_server(place, *arguments):
    """A server with metrics: their port, and their address."""
    port = free_port()
    place.start_server("--metrics", str(port), *arguments)
    url = f"http://127.0.0.1:{port}/metrics"

    def answers():
        try:
            return read(url).endswith("# EOF\n")
        except urllib.error.URLError:
            return False

    wait_until(answers, "the page is there")
    return port, url


class Prometheus:
    """One with this configuration, in a folder of its own, until it is closed. It looks four times a second."""

    def __init__(self, folder, configuration, *options):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "prometheus.yml"
        config.write_text(f"global: {{scrape_interval: 250ms, evaluation_interval: 250ms}}\n{configuration}", encoding="utf-8")
        subprocess.run([program("promtool"), "check", "config", *(["--agent"] if self.is_agent(options) else []), str(config)], check=True,
                       stdout=subprocess.DEVNULL)
        self.at = f"127.0.0.1:{free_port()}"
        self.log = self.folder / "prometheus.log"
        with open(self.log, "w", encoding="utf-8") as log:
            storage = "agent" if self.is_agent(options) else "tsdb"
            self.process = subprocess.Popen([program("prometheus"), f"--config.file={config}", f"--web.listen-address={self.at}",
                                             f"--storage.{storage}.path={self.folder / 'data'}", *options], stdout=log, stderr=log)

    @staticmethod
    def is_agent(options):
        """It sends what it reads to another one, and answers no questions itself."""
        return "--enable-feature=agent" in options

    def __enter__(self):
        wait_until(lambda: self.process.poll() is None and self.is_ready(), self.log.read_text, 30)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def is_ready(self):
        try:
            return bool(read(f"http://{self.at}/-/ready"))
        except urllib.error.URLError:
            return False

    def ask(self, path):
        try:
            return json.loads(read(f"http://{self.at}/api/v1/{path}"))["data"]
        except urllib.error.URLError:
            return None  # it does not answer yet

    def values(self, query):
        """[(labels, value)]"""
        data = self.ask(f"query?query={urllib.parse.quote(query)}")
        return [(row["metric"], float(row["value"][1])) for row in data["result"]] if data else []

    def value(self, query):
        values = self.values(query)
        return values[0][1] if len(values) == 1 else None

    def wait_for(self, query):
        wait_until(lambda: self.values(query), lambda: f"{query}\n{self.log.read_text()}", 30)
