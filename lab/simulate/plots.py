"""Render the backlog of each scenario over time as one HTML page (build/simulate.html)."""

import html
from collections.abc import Sequence

from lab.simulate.runs import RunSummary
from lab.svg import lines

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 720px; margin: 2em auto; padding: 0 1em }
body { color: #222; background: #fff }
h2 { font-size: 1.05em; margin: 2em 0 0.2em } p { margin: 0.2em 0; color: #555 } svg { width: 100%; height: auto }
text { font-size: 11px; fill: #555 } .axis { stroke: #999 } polyline { fill: none; stroke-width: 1.6 }
"""


def page(ran: Sequence[RunSummary]) -> str:
    parts = "\n".join(_section(each) for each in ran)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Backlog, simulated</title>
<style>{STYLE}</style>
<h1>Backlog, simulated</h1>
<p>Messages on each queue, including those in flight. Written by
<code>make simulate</code>. lab/docs/scale.md explains the plots.</p>
{parts}
</html>
"""


def _section(ran: RunSummary) -> str:
    workers = "; ".join(f"{name}: {how}" for name, how in ran.workers.items())
    caption = f"Seed {ran.seed}, a slice of 1/{ran.slice_of:,}. Workers x threads: {workers}."
    title = html.escape(ran.title)
    return f"<h2>{title}</h2>\n<p>{html.escape(caption)}</p>\n{lines(ran.times, ran.backlog, ran.title)}"
