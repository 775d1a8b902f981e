#!/usr/bin/env python3
"""Every metric that the dashboard and the alert rules name is in the table of docs/metrics.md, with labels that it has; and promtool finds
no fault in the rules. Nothing of one machine is added up over several.

  names_test.py [--promtool PROGRAM]      without it, the rules are not run
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "docs/metrics.md"
DASHBOARD = HERE.parent / "grafana/xsched.json"
RULES = HERE / "xsched.rules.yml"
RULES_TEST = HERE / "xsched.rules_test.yml"
OF_TARGET = {"instance", "job"}  # Prometheus adds them
OF_ONE_MACHINE = {"pid", "client", "queue"}  # another machine has the same for something else


def known_metrics():
    """{the name of a sample: its labels}"""
    found, of_scope = {}, set()
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("**`xsched_"):
            of_scope = set(line.partition(" Labels: ")[2].split(", ")) - {""}
        row = re.match(r"\| `(xsched_\w+)` \| (\w+) \| \w* \| (?:`(\w+)`)? \|", line)
        if row:
            name, kind, label = row.groups()
            labels = of_scope | OF_TARGET | ({label} if label else set())
            endings = {"_bucket": {"le"}, "_sum": set(), "_count": set()} if kind == "histogram" else {"": set()}
            found |= {name + ending: labels | more for ending, more in endings.items()}
    return found


def expressions():
    dashboard = json.loads(DASHBOARD.read_text())
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    # Each is one line, or folded behind `>`.
    rules = RULES.read_text()
    yield from re.findall(r"^ +expr: ([^>\n].*)$", rules, re.M)
    yield from re.findall(r"^ +expr: >\n((?: {10}.*\n)+)", rules, re.M)


def faults_in(expression, metrics):
    used = re.findall(r"\b(xsched_\w+|up)\b(?:\{([^}]*)\})?", expression)
    if not used:
        yield f"no metric in {expression}"
    for name, matchers in used:
        labels = {"up": OF_TARGET, **metrics}.get(name)
        if labels is None:
            yield f"{name} is not in {DOCUMENT.name}: {expression}"
            continue
        unknown = set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", matchers)) - labels
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
            by = set(re.split(r", *", grouped))
            unknown |= by - labels
            if by & OF_ONE_MACHINE and "instance" not in by:
                yield f"adds up different machines, because it is not by instance: {expression}"
        if unknown:
            yield f"{name} has no label {', '.join(sorted(unknown))}: {expression}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--promtool", type=lambda path: pathlib.Path(path).resolve())
    options = parser.parse_args()
    metrics = known_metrics()
    all_of_them = list(expressions())
    if len(metrics) < 30 or len(all_of_them) < 25:
        sys.exit(f"{len(metrics)} metrics and {len(all_of_them)} expressions: too few were found")
    faults = [fault for expression in all_of_them for fault in faults_in(expression, metrics)]
    if faults:
        sys.exit("\n".join(faults))
    if options.promtool:
        subprocess.run([options.promtool, "check", "rules", str(RULES)], check=True)
        subprocess.run([options.promtool, "test", "rules", RULES_TEST.name], check=True, cwd=HERE)


main()
