"""A page of inline SVG: backlog over time, one plot a scenario, nothing fetched from anywhere."""

import html
from collections.abc import Sequence

from lab.simulate.runs import Ran

WIDTH, HEIGHT, LEFT, BELOW = 640, 220, 70, 30
COLOURS = {"orders": "#4477aa", "payments": "#cc6677", "emails": "#228833"}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 720px; margin: 2em auto; padding: 0 1em }
body { color: #222; background: #fff }
h2 { font-size: 1.05em; margin: 2em 0 0.2em } p { margin: 0.2em 0; color: #555 } svg { width: 100%; height: auto }
text { font-size: 11px; fill: #555 } .axis { stroke: #999 } polyline { fill: none; stroke-width: 1.6 }
"""


def page(ran: Sequence[Ran]) -> str:
    parts = "\n".join(_section(each) for each in ran)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Backlog, simulated</title>
<style>{STYLE}</style>
<h1>Backlog, simulated</h1>
<p>Messages on each queue, those in flight included. Written by
<code>python -m lab.simulate</code>; what it says is in docs/scale.md.</p>
{parts}
</html>
"""


def _section(ran: Ran) -> str:
    workers = "; ".join(f"{name}: {how}" for name, how in ran.workers.items())
    told = f"Seed {ran.seed}, a slice of 1/{ran.slice_of:,}. Workers x threads: {workers}."
    return f"<h2>{html.escape(ran.title)}</h2>\n<p>{html.escape(told)}</p>\n{_plot(ran)}"


def _plot(ran: Ran) -> str:
    last = ran.times[-1] or 1
    top = max(1, *(max(backlog) for backlog in ran.backlog.values()))
    lines, legend = [], []
    for n, (name, backlog) in enumerate(ran.backlog.items()):
        points = " ".join(
            f"{LEFT + t / last * (WIDTH - LEFT):.1f},{HEIGHT - b / top * (HEIGHT - 20):.1f}"
            for t, b in zip(ran.times, backlog, strict=True)
        )
        lines.append(f'<polyline stroke="{COLOURS[name]}" points="{points}"/>')
        legend.append(f'<text x="{LEFT + 10 + 90 * n}" y="14" style="fill:{COLOURS[name]}">{name}</text>')
    marks = "".join(
        f'<text x="{LEFT - 6}" y="{HEIGHT - share * (HEIGHT - 20) + 4:.0f}" text-anchor="end">{share * top:,.0f}</text>'
        for share in (0, 0.5, 1)
    )
    ticks = "".join(
        f'<text x="{LEFT + share * (WIDTH - LEFT):.0f}" y="{HEIGHT + 16}" text-anchor="{anchor}">'
        f"{_time(share * last)}</text>"
        for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    )
    axes = f'<path class="axis" fill="none" d="M{LEFT} 20V{HEIGHT}H{WIDTH}"/>'
    drawn = "".join([axes, *lines, *legend, marks, ticks])
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT + BELOW}" role="img">{drawn}</svg>'


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds >= 180 else f"{seconds:,.0f} s"
