#!/usr/bin/env python3
"""Computes figures from samples, and a table from figures. Pure, except for reading and writing results.

  figures.py [--html PAGE] [--svg PICTURE] RESULTS.json…

Prints the table of one or several runs, later ones replacing earlier ones' rows. As a page, it has how often each latency occurred as well;
the picture has that alone.
"""
import argparse
import html
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "plan"))
import distributions  # noqa: E402
import page as pages  # noqa: E402


def percentile(values, fraction):
    if not values:
        raise ValueError("no samples")
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * fraction))]


def summary(values):
    """p50, p99, maximum and the number of samples."""
    if not values:
        return None
    return {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99), "max": max(values), "n": len(values)}


def rate(progress, begin, end):
    """Units per second between two times, from [[time, units so far], …], interpolated at the window's edges."""
    if not progress or begin < progress[0][0] or end > progress[-1][0] or end <= begin:
        raise ValueError("the window is not covered")

    def at(when):
        for (t0, n0), (t1, n1) in zip(progress, progress[1:]):
            if t0 <= when <= t1:
                return n0 + (n1 - n0) * (when - t0) / (t1 - t0) if t1 > t0 else n1
        return progress[-1][1]

    return (at(end) - at(begin)) / (end - begin)


def within(value, goal):
    low, high = goal
    return (low is None or value >= low) and (high is None or value <= high)


def goal_text(goal):
    low, high = goal
    if low == high:
        return f"{low:g}"
    if low is None:
        return f"≤ {high:g}"
    if high is None:
        return f"≥ {low:g}"
    return f"{low:g} … {high:g}"


class Report:
    """Rows. Each is written at once, so that an interrupted run keeps its rows."""

    def __init__(self, path, machine=None):
        self.path = path
        self.machine = machine or {}
        self.rows = []

    def add(self, figure, case, what, value, goal=None, *, alone=None, native=None, xsched=None, details=None):
        """Adds one criterion. `value` is compared with `goal` (lowest, highest). alone, native and xsched are shown beside it. Each
        is a number or a summary()."""
        row = {"figure": figure, "case": case, "what": what, "value": value, "goal": goal,
               "met": None if goal is None else within(value, goal),
               "alone": alone, "native": native, "xsched": xsched}
        if details is not None:
            row["details"] = details
        self._append(row)

    def note(self, figure, case, text):
        """Adds a row without a figure: why a measurement was skipped or failed."""
        self._append({"figure": figure, "case": case, "note": text})

    def _append(self, row):
        self.rows.append(row)
        print(line(row), flush=True)
        self.write()

    def write(self):
        if self.path is None:
            return
        text = json.dumps({"machine": self.machine, "rows": self.rows}, indent=1)
        with open(f"{self.path}.new", "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(f"{self.path}.new", self.path)


def number(value):
    if value is None:
        return ""
    if isinstance(value, dict):
        return f"{number(value['p50'])} / {number(value['p99'])} / {number(value['max'])}"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 100 else f"{value:.3f}"


def line(row):
    if "note" in row:
        return f"[{row['figure']}] {row['case']}: {row['note']}"
    parts = [f"{name} {number(row[name])}" for name in ("alone", "native", "xsched") if row[name] is not None]
    goal = f" (goal {goal_text(row['goal'])}: {'met' if row['met'] else 'MISSED'})" if row["goal"] else ""
    return f"[{row['figure']}] {row['case']}: {row['what']} {number(row['value'])}{goal}; {'; '.join(parts)}"


def table(rows):
    lines = ["| figure | case | alone | native | XSched | measured | | goal | met |",
             "|---|---|---|---|---|---|---|---|---|"]
    notes = []
    for row in rows:
        if "note" in row:
            notes.append(f"- {row['figure']}, {row['case']}: {row['note']}")
            continue
        *others, met = cells(row)
        lines.append("| " + " | ".join([*others, f"**{met}**" if met == "no" else met]) + " |")
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


def merged(results):
    """Rows of several runs; a later run's rows for a figure and case replace an earlier one's."""
    rows = []
    for result in results:
        new = {(row["figure"], row["case"]) for row in result["rows"]}
        rows = [row for row in rows if (row["figure"], row["case"]) not in new] + result["rows"]
    return rows


def page(results):
    """The text between docs/benchmarks/h200.md's introduction and its discussion."""
    machine = results[-1]["machine"]
    told = "".join(f"- {name}: {value}\n" for name, value in machine.items() if isinstance(value, (str, int, float)))
    return f"{told}\nWhere three numbers stand together they are p50 / p99 / maximum.\n\n{table(merged(results))}"


def cells(row):
    """Of the table, as text."""
    return (row["figure"], row["case"], *(number(row[name]) for name in ("alone", "native", "xsched")), row["what"], number(row["value"]),
            goal_text(row["goal"]) if row["goal"] else "", {None: "", True: "yes", False: "no"}[row["met"]])


def latencies(row):
    """{name: ms} of the samples that a row has."""
    details = row.get("details")
    if not isinstance(details, dict):
        return {}
    named = {"alone": "alone_ms", "native": "native_ms", "XSched": "xsched_ms"}
    return {name: details[key] for name, key in named.items() if details.get(key)}


def distributed(rows):
    """(name, latencies) of each row with samples."""
    return [(f"{row['figure']}, {row['case']}", samples) for row in rows if (samples := latencies(row))]


def html_page(results):
    """The table, and a picture for each row with samples."""
    rows = merged(results)
    machine = "".join(f"<li>{html.escape(f'{name}: {value}')}</li>" for name, value in results[-1]["machine"].items())
    notes = "".join(f"<li>{html.escape(line(row))}</li>" for row in rows if "note" in row)
    headings = ("figure", "case", "alone", "native", "XSched", "measured", "", "goal", "met")
    table_rows = [(cells(row), "failed" if row["met"] is False else "") for row in rows if "note" not in row]
    pictures = "".join(distributions.figure(f"{name}: how often each latency occurred", "ms", samples, percentile)
                       for name, samples in distributed(rows))
    return pages.document("XSched: measurements on a GPU", "\n".join((
        f"<ul>{machine}</ul>", "<p>Where three numbers stand together they are p50 / p99 / maximum.</p>",
        pages.table("All figures", headings, table_rows), f"<ul>{notes}</ul>" if notes else "",
        "<h2>Latencies</h2>" if pictures else "", pictures)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--html", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    results = [json.loads(path.read_text(encoding="utf-8")) for path in options.results]
    print(page(results), end="")
    if options.html:
        options.html.write_text(html_page(results), encoding="utf-8")
    if options.svg:
        options.svg.write_text(distributions.sheet("How often each latency occurred", "ms", distributed(merged(results)), percentile),
                               encoding="utf-8")


if __name__ == "__main__":
    main()
