"""The page with the plan's results: the table of the tests, and the pictures of their figures. Pure."""
import html

import distributions
import record
from figures import percentile
from page import Plot, document, svg, table

PERCENTS = (0, 25, 50, 75, 90, 95, 99, 100)


def page(records, machine):
    """The HTML of all records."""
    lines = "".join(f"<li>{html.escape(one)}</li>" for one in machine.lines())
    rows = [((one["test_id"], one["test_name"], one["status"], record.result_text(one)), one["status"]) for one in records]
    pictures = "".join(pictures_of(one) for one in records)
    heading = "<h2>Figures</h2>" if pictures else ""
    return document("XSched: results of the test plan", f"""<ul>{lines}</ul>
<p>{html.escape(record.totals_text(records))}</p>
<h2>Tests</h2>
{table("Results of the tests", ("test", "name", "status", "result"), rows)}
{heading}
{pictures}
""")


def pictures_of(one):
    """Of one test, each with its figures as a table."""
    return "".join([*(latencies(f"{one['test_id']} {title}", series) for title, series in one["latencies"].items()),
                    *(plotted(one["test_id"], Plot(**plot)) for plot in one["plots"])])


def latencies(title, series):
    """`series`: {name: milliseconds}."""
    rows = [((name, len(values), *(record.number(percentile(values, percent / 100)) for percent in PERCENTS)), "")
            for name, values in series.items()]
    return (distributions.figure(f"{title}: how often each latency occurred", "ms", series, percentile)
            + table(f"{title}: percentiles, ms", ("case", "values", *(f"{percent} %" for percent in PERCENTS)), rows))


def plotted(test_id, plot):
    title = f"{test_id} {plot.title}"
    xs = sorted({x for points in plot.lines.values() for x, _ in points})
    by_line = [dict(map(tuple, points)) for points in plot.lines.values()]
    rows = [((record.number(x), *(record.number(line[x]) if x in line else "–" for line in by_line)), "") for x in xs]
    return (f"<figure><figcaption>{html.escape(title)}</figcaption>{svg(plot)}</figure>\n"
            + table(f"{title}: {plot.y}", (plot.x, *plot.lines), rows))
