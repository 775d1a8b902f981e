"""One HTML file with the results: the table, and a plot (SVG) of each series of figures. Pure. Uses Python's own library only, because
the machines on which the plan runs have no other."""
import dataclasses
import html
import math

import record

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 180, 16, 44  # margins; the legend is in the right one
COLORS = ("#0b6e99", "#c2410c", "#3f7d20", "#7c3aed", "#b91c1c", "#525252")
TICKS = 5
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #1a1a1a; }
table { border-collapse: collapse; width: 100%; } th, td { border-bottom: 1px solid #ddd; padding: .3em .6em; text-align: left; vertical-align: top; }
.failed { color: #b91c1c; font-weight: 600; } .skipped { color: #737373; }
svg text { font: 12px system-ui, sans-serif; fill: #404040; } figure { margin: 1.5em 0; } figcaption { font-weight: 600; }
"""


@dataclasses.dataclass
class Plot:
    """Lines through points: {name: [[x, y], …]}. Where `x_doubles`, equal distances along the x axis are equal factors."""
    title: str
    x: str
    y: str
    lines: dict
    x_doubles: bool = False


def ticks(values):
    """Round numbers at equal distances, of which 0 is one, from below all values to above them."""
    lowest, highest = min([0, *values]), max([0, *values])
    if lowest == highest:
        return [0, 1]
    step = (highest - lowest) / TICKS
    unit = 10 ** math.floor(math.log10(step))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= step * 0.999)
    return [step * index for index in range(math.floor(lowest / step), math.ceil(highest / step) + 1)]


class _Area:
    """Where the values of a plot are on the picture."""

    def __init__(self, plot):
        points = [point for line in plot.lines.values() for point in line]
        self._along = math.log2 if plot.x_doubles else float
        self.xs = sorted({x for x, _ in points})
        self.ys = ticks([y for _, y in points])
        self._first, self._last = self._along(self.xs[0]), self._along(self.xs[-1])

    def x(self, value):
        length = self._last - self._first
        return LEFT + (WIDTH - LEFT - RIGHT) * ((self._along(value) - self._first) / length if length else 0.5)

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.ys[0]) / (self.ys[-1] - self.ys[0])


def svg(plot):
    area = _Area(plot)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label="{html.escape(plot.title)}">']
    for y in area.ys:
        parts.append(f'<line x1="{LEFT}" y1="{area.y(y):.1f}" x2="{right}" y2="{area.y(y):.1f}" stroke="#e5e5e5"/>'
                     + text(LEFT - 8, area.y(y) + 4, record.number(y), "end"))
    for x in area.xs:
        parts.append(text(area.x(x), bottom + 18, record.number(x), "middle"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 6, plot.x, "middle"))
    parts.append(text(14, (TOP + bottom) / 2, plot.y, "middle", f' transform="rotate(-90 14 {(TOP + bottom) / 2:.0f})"'))
    for index, (name, points) in enumerate(plot.lines.items()):
        parts += line(area, points, COLORS[index % len(COLORS)], name, TOP + 14 + 18 * index)
    return "\n".join([*parts, "</svg>"])


def line(area, points, color, name, legend_y):
    places = [(area.x(x), area.y(y)) for x, y in points]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="2"/>'
    for (x, y), point in zip(places, points):
        yield (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"><title>{html.escape(name)}: '
               f"{record.number(point[0])}, {record.number(point[1])}</title></circle>")
    legend = WIDTH - RIGHT + 16
    yield f'<line x1="{legend}" y1="{legend_y - 4}" x2="{legend + 18}" y2="{legend_y - 4}" stroke="{color}" stroke-width="2"/>'
    yield text(legend + 24, legend_y, name, "start")


def text(x, y, words, anchor, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(str(words))}</text>'


def page(records, machine):
    """The HTML of all records."""
    lines = "".join(f"<li>{html.escape(one)}</li>" for one in machine.lines())
    rows = "".join(row(one) for one in records)
    plots = "".join(figure(one, Plot(**plot)) for one in records for plot in one["plots"])
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>XSched: results of the test plan</title><style>{STYLE}</style></head><body>
<h1>XSched: results of the test plan</h1>
<ul>{lines}</ul>
<p>{html.escape(record.totals_text(records))}</p>
{plots}
<table><tr><th>test</th><th>name</th><th>status</th><th>result</th></tr>{rows}</table>
</body></html>
"""


def row(one):
    cells = (one["test_id"], one["test_name"], one["status"], record.result_text(one))
    return f'<tr class="{one["status"]}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def figure(one, plot):
    return f"<figure><figcaption>{html.escape(one['test_id'])} {html.escape(plot.title)}</figcaption>{svg(plot)}</figure>"
