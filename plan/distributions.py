"""How often each latency occurred, as a picture (SVG) for pages: one histogram below another, on a common logarithmic scale. Pure."""
import html
import math
import re

import page

LEFT, PLOT, RIGHT = 230, 400, 100  # the names are before the plots, and p99 is behind them
WIDTH = LEFT + PLOT + RIGHT
ROW, TALLEST, AXIS, TITLE = 30, 22, 34, 30
PARTS = 60


def percentile(values, fraction):
    """The smallest value that at least this fraction of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(fraction * len(values)) - 1)]


def around(values):
    """The nearest numbers of 1, 2, 5, 10, 20, … around all values, which are above 0."""
    def power(value):
        return 10.0 ** math.floor(math.log10(value))
    lowest, highest = min(values), max(values)
    low = max(power(lowest) * factor for factor in (1, 2, 5) if power(lowest) * factor <= lowest * (1 + 1e-9))
    high = min(power(highest) * factor for factor in (1, 2, 5, 10) if power(highest) * factor >= highest * (1 - 1e-9))
    return (low, high) if low < high else (low, low * 10)


def ticks(low, high):
    """1, 2, 5, 10, 20, … or, where that is too much, powers of ten."""
    factors = (1,) if high / low > 2000 else (1, 2, 5)
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0 ** power * factor for power in range(first, last + 1) for factor in factors
            if low * 0.999 <= 10.0 ** power * factor <= high * 1.001]


def figure(title, unit, series, fraction_of=percentile):
    """For a page. `series`: {name: values above 0}. `fraction_of`: how the same page computes its other percentiles."""
    height, parts = drawing(unit, series, fraction_of)
    shown = html.escape(title)
    return (f'<figure><figcaption>{shown}</figcaption>\n<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">'
            f"<title>{shown}</title><desc>{html.escape(description(title, unit, series, fraction_of))}</desc>\n{parts}</svg></figure>\n")


def sheet(title, unit, figures, fraction_of=percentile):
    """A file of its own (SVG) with one picture below another, in the light colors of pages, which viewers that know no variables of CSS show
    as well. `figures`: [(title, series), …]."""
    colors = dict(re.findall(r"--(\w+): (#\w+)", page.STYLE[:page.STYLE.index("@media")]))
    style = (f"text {{ font: 12px sans-serif; fill: {colors['text']}; }} .grid {{ stroke: {colors['line']}; }} "
             f".mark {{ stroke: {colors['text']}; stroke-width: 1.5; }} "
             + " ".join(f".c{index} {{ fill: {colors[f'c{index}']}; }}" for index in range(page.COLORS)))
    parts, bottom = [], TITLE
    for name, series in figures:
        height, drawn = drawing(unit, series, fraction_of)
        parts.append(f'<g transform="translate(0 {bottom})"><desc>{html.escape(description(name, unit, series, fraction_of))}</desc>'
                     f"{page.text(0, -8, name, 'start')}\n{drawn}</g>")
        bottom += height + TITLE
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" role="img"><title>{html.escape(title)}</title>\n'
            f'<style>{style}</style>\n<rect width="100%" height="100%" fill="{colors["back"]}"/>\n' + "\n".join(parts) + "</svg>\n")


def drawing(unit, series, fraction_of):
    """The height of a picture, and what it consists of."""
    low, high = around([value for values in series.values() for value in values])

    def place(value):
        return LEFT + PLOT * math.log(value / low) / math.log(high / low)

    height = ROW * len(series)
    parts = []
    for value in ticks(low, high):
        parts.append(line("grid", place(value), 0, height) + page.text(place(value), height + 14, f"{value:g}", "middle"))
    parts.append(page.text(LEFT + PLOT / 2, height + 30, f"{unit}, each step the same factor; lines: p50 and p99", "middle"))
    for index, (name, values) in enumerate(series.items()):
        parts += row(name, values, unit, f"c{index % page.COLORS}", ROW * (index + 1), place, fraction_of)
    return height + AXIS, "\n".join(parts)


def row(name, values, unit, color, bottom, place, fraction_of):
    counts = [0] * PARTS
    for value in values:
        counts[min(PARTS - 1, int((place(value) - LEFT) / PLOT * PARTS))] += 1
    yield page.text(LEFT - 8, bottom - 6, name, "end")
    for part, count in enumerate(counts):
        if count:  # what occurred at all is visible
            height = max(1.5, TALLEST * count / max(counts))
            yield (f'<rect class="{color} fill" x="{LEFT + PLOT * part / PARTS:.1f}" y="{bottom - height:.1f}" '
                   f'width="{PLOT / PARTS - 0.5:.1f}" height="{height:.1f}"/>')
    for fraction in (0.5, 0.99):
        yield line("mark", place(fraction_of(values, fraction)), bottom - TALLEST - 2, bottom)
    yield page.text(LEFT + PLOT + 6, bottom - 6, f"p99 {fraction_of(values, 0.99):.3g} {unit}", "start")


def line(style, x, top, bottom):
    return f'<line class="{style}" x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}"/>'


def description(title, unit, series, fraction_of):
    """The picture in words."""
    return f"{title}. " + " ".join(
        f"{name}: {len(values)} values, p50 {fraction_of(values, 0.5):.3g} {unit}, p99 {fraction_of(values, 0.99):.3g} {unit}, "
        f"longest {max(values):.3g} {unit}." for name, values in series.items())
