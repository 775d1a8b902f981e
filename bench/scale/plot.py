"""The plot of the result, as SVG."""
import math

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 60
COLORS = {"whole": "#777777", "native": "#c0392b", "HPF": "#1f77b4"}


def savings(rows, names):
    """GPUs that are needed, by the target for p99. `names`: by key of the rows."""
    most = max(row["whole"] for row in rows)
    first, last = math.log(rows[0]["target"]), math.log(rows[-1]["target"])

    def x(target):
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(target) - first) / ((last - first) or 1)

    def y(gpus):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * gpus / most

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for step in range(5):
        gpus = most * step // 4
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(gpus):.1f}" y2="{y(gpus):.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(gpus) + 4:.1f}" text-anchor="end">{gpus}</text>')
    for row in rows:
        parts.append(f'<text x="{x(row["target"]):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{row["target"]}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">p99 of each service : p99 alone, at most</text>')
    parts.append(f'<text x="16" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" '
                 f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})">GPUs that are needed</text>')
    for key, name in names.items():
        points = " ".join(f"{x(row['target']):.1f},{y(row[key]):.1f}" for row in rows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[key]}" stroke-width="2"/>')
        at = rows[len(rows) // 2]
        beside = 16 if at[key] == min(at[other] for other in names) else -6  # below the lowest line, above the others
        parts.append(f'<text x="{x(at["target"]):.1f}" y="{y(at[key]) + beside:.1f}" fill="{COLORS[key]}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
