"""What pages of results are made of: one HTML file that needs nothing else, tables, and plots of lines (SVG). Pure. Uses Python's own
library only, because the machines on which the plan runs have no other."""
import dataclasses
import html
import math
import pathlib

import record

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 180, 16, 44  # margins; the legend is in the right one
COLORS = 6  # in page.css
TICKS = 5
STYLE = pathlib.Path(__file__).resolve().with_name("page.css").read_text(encoding="utf-8")


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
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img"><title>{html.escape(plot.title)}</title>'
             f"<desc>{html.escape(description(plot))}</desc>"]
    for y in area.ys:
        parts.append(f'<line x1="{LEFT}" y1="{area.y(y):.1f}" x2="{right}" y2="{area.y(y):.1f}" class="grid"/>'
                     + text(LEFT - 8, area.y(y) + 4, record.number(y), "end"))
    for x in area.xs:
        parts.append(text(area.x(x), bottom + 18, record.number(x), "middle"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 6, plot.x, "middle"))
    parts.append(text(14, (TOP + bottom) / 2, plot.y, "middle", f' transform="rotate(-90 14 {(TOP + bottom) / 2:.0f})"'))
    for index, (name, points) in enumerate(plot.lines.items()):
        parts += line(area, points, f"c{index % COLORS}", name, TOP + 14 + 18 * index)
    return "\n".join([*parts, "</svg>"])


def description(plot):
    """The picture in words."""
    lines = (f"{name}: " + ", ".join(f"{record.number(y)} at {record.number(x)}" for x, y in points) for name, points in plot.lines.items())
    return f"{plot.y} by {plot.x}. " + "; ".join(lines) + "."


def line(area, points, color, name, legend_y):
    places = [(area.x(x), area.y(y)) for x, y in points]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{joined}" class="{color} stroke"/>'
    for x, y in places:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="{color} fill"/>'
    legend = WIDTH - RIGHT + 16
    yield f'<line x1="{legend}" y1="{legend_y - 4}" x2="{legend + 18}" y2="{legend_y - 4}" class="{color} stroke"/>'
    yield text(legend + 24, legend_y, name, "start")


def text(x, y, words, anchor, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(str(words))}</text>'


def document(title, body):
    """A page that needs nothing else. `body`: HTML."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>
<title>{html.escape(title)}</title><style>
{STYLE}</style></head>
<body>
<main>
<h1>{html.escape(title)}</h1>
{body}</main>
</body></html>
"""


def table(caption, headings, rows):
    """`rows`: pairs of cells and the row's class. A reader without a mouse can scroll what has the focus."""
    heading = "".join(f'<th scope="col">{html.escape(one)}</th>' for one in headings)
    lines = "".join((f'<tr class="{style}">' if style else "<tr>") + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>\n"
                    for cells, style in rows)
    return (f'<div class="scroll" role="region" tabindex="0" aria-label="{html.escape(caption)}"><table><caption>{html.escape(caption)}</caption>\n'
            f"<thead><tr>{heading}</tr></thead>\n<tbody>\n{lines}</tbody></table></div>")
