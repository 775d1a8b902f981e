"""Writes the results: a JSON file for each test, and a table of all as text and in markdown. Pure, except for the files."""
import datetime
import json
import os

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def record(test, machine, status, *, date, metrics=None, criteria=(), plots=(), latencies=None, notes="", seconds=0.0):
    return {"test_id": test.id, "test_name": test.name, "stage": test.stage, "date": date, "hardware": machine.hardware(),
            "runtime_version": machine.runtime(), "xsched_version": machine.xsched, "status": status,
            "metrics": metrics or {}, "criteria": list(criteria), "plots": list(plots),
            "latencies": latencies or {}, "notes": notes, "seconds": round(seconds, 1)}


def write(path, content):
    """Writes the file as a whole or not at all."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    os.replace(f"{path}.new", path)


# ---- the table ----

def number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"


def result_text(one):
    """A short text: the figures that were compared with a bound, or else the beginning of the notes."""
    if one["status"] == SKIPPED:
        return one["notes"].removeprefix("skipped: ")
    figures = "; ".join(f"{criterion['what']} {number(criterion['value'])}{bounds_text(criterion)}" for criterion in one["criteria"])
    if one["status"] == FAILED or not figures:
        first = one["notes"].strip().splitlines()
        return "; ".join(filter(None, [figures, first[0][:160] if first else ""]))
    return figures


def bounds_text(criterion):
    texts = []
    for name in ("goal", "limit"):
        bound = criterion.get(name)
        if bound is not None:
            sign = "≤" if criterion["sense"] == "at most" else "≥"
            met = criterion["value"] <= bound if sign == "≤" else criterion["value"] >= bound
            texts.append(f"{name} {sign} {number(bound)}: {'met' if met else 'MISSED'}")
    return f" ({', '.join(texts)})" if texts else ""


def totals(records):
    return {status: sum(one["status"] == status for one in records) for status in (PASSED, FAILED, SKIPPED)}


def totals_text(records):
    return ", ".join(f"{count} {status}" for status, count in totals(records).items())


def text_table(records, machine):
    rows = [("test", "status", "s", "name", "result")]
    rows += [(one["test_id"], one["status"], f"{one['seconds']:.0f}", one["test_name"], result_text(one)) for one in records]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = machine.lines() + [""]
    for row in rows:
        lines.append("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[4]]).rstrip())
    return "\n".join([*lines, "", totals_text(records), ""])


def markdown_table(records, machine):
    lines = [f"- {line}" for line in machine.lines()] + ["", "| test | name | status | result |", "|---|---|---|---|"]
    for one in records:
        status = f"**{one['status']}**" if one["status"] == FAILED else one["status"]
        cells = [one["test_id"], one["test_name"], status, result_text(one)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, "", totals_text(records), ""])
