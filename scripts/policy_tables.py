#!/usr/bin/env python3
"""Writes the tables of docs/policies.md: what each policy makes of each load that comes with XSched, as `xsched simulate` predicts it.

    policy_tables.py --xsched FILE --write      writes them between their markers
    policy_tables.py --xsched FILE --check      exit status 1 if they are not what would be written
"""

import argparse
import difflib
import json
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent
WARM_UP_SECONDS = "1"


class Column:
    """One figure of one queue (a row of the simulator's result)."""

    def __init__(self, title, queue, key, scale, digits):
        self.title = title
        self._queue = queue
        self._key = key
        self._scale = scale
        self._digits = digits

    def cell(self, queues):
        """A queue of which no task has ended has no latencies."""
        figures = queues[self._queue]
        if self._key.endswith("_ms") and figures["tasks"] == 0:
            return "–"
        return f"{figures[self._key] * self._scale:.{self._digits}f}"


class Sum:
    """The same figure of several queues together."""

    def __init__(self, title, columns):
        self.title = title
        self._columns = columns

    def cell(self, queues):
        return f"{sum(float(column.cell(queues)) for column in self._columns):g}"


def p99(queue):
    return Column(f"p99 of {queue}, ms", queue, "p99_ms", 1, 1)


def p50(queue):
    return Column(f"p50 of {queue}, ms", queue, "p50_ms", 1, 1)


def share(queue):
    return Column(f"{queue}, % of the time", queue, "share", 100, 1)


def missed(queue):
    return Column(f"late, of {queue}", queue, "missed", 1, 0)


# The figures that tell the policies apart, for each load.
LOADS = {
    "priority": [p50("serve"), p99("serve"), share("train")],
    "partition": [share("first"), share("second")],
    "weights": [share("large"), share("small"), p99("sleeper")],
    "conference": [p99("conference"), missed("conference"), p99("speech")],
    "deadlines": [p99("small"), p99("medium"), p99("large"), Sum("late, of all", [missed("small"), missed("medium"), missed("large")])],
    "devices": [p99("detect"), p99("classify"), share("train"), share("speech")],
    "reservation": [share("guaranteed"), share("limited"), share("other")],
    "slo": [p99("serve"), share("train")],
}


def simulate(xsched, load):
    path = PROJECT / f"examples/loads/{load}.xrec"
    run = subprocess.run([xsched, "simulate", str(path), "--warm-up", WARM_UP_SECONDS, "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{xsched} simulate {path}: exit status {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def about(load):
    with open(PROJECT / f"examples/loads/{load}.xrec") as lines:
        return json.loads(next(lines))["about"]


def table(outcomes, columns):
    """Policies with the same figures share a row."""
    rows = {}
    for outcome in outcomes:
        queues = {queue["queue"]: queue for queue in outcome["queues"]}
        cells = tuple(column.cell(queues) for column in columns)
        rows.setdefault(cells, []).append(outcome["policy"])
    lines = [["policy", *(column.title for column in columns)], ["---"] * (len(columns) + 1)]
    lines += [[", ".join(policies), *cells] for cells, policies in rows.items()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def markers(load):
    return f"<!-- {load}: written by scripts/policy_tables.py -->\n", f"<!-- end of {load} -->\n"


def with_tables(text, document, xsched, loads):
    for load in loads:
        begin, end = markers(load)
        before, found_begin, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            sys.exit(f"{document}: the lines\n{begin}{end}are missing: the table of the load {load} stands between them")
        content = f"\n**{load}** — {about(load)}.\n\n{table(simulate(xsched, load), LOADS[load])}\n"
        text = before + begin + content + end + after
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xsched", required=True)
    parser.add_argument("--document", type=pathlib.Path, default=PROJECT / "docs/policies.md")
    parser.add_argument("--load", action="append", choices=LOADS, help="only this one's table")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = options.document.read_text()
    right = with_tables(text, options.document, options.xsched, options.load or LOADS)
    if options.write:
        options.document.write_text(right)
        return
    changed = list(difflib.unified_diff(text.splitlines(), right.splitlines(), str(options.document), "simulated", lineterm=""))
    if changed:
        sys.exit("\n".join(changed) + "\n\nrun scripts/policy_tables.py --xsched build/ci/bin/xsched --write, and see what has changed and why")


if __name__ == "__main__":
    main()
