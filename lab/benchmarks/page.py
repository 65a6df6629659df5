"""results.html: every figure as bars and a table, in one file that asks nothing of any other."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from lab.benchmarks.table import columns_of, spelled

LABEL, WIDE, HIGH = 260, 460, 24  # in pixels: a bar's label, the longest bar, a bar's row
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 2.5rem; font-size: 1.1rem; }
table { border-collapse: collapse; font-size: 13px; margin: .8rem 0; }
td, th { padding: .15rem .7rem .15rem 0; text-align: left; border-bottom: 1px solid #ddd; font-weight: normal; }
th { color: #666; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
ul { color: #555; font-size: 13px; padding-left: 1.2rem; } small { color: #777; }
.met { color: #1a7f37; } .missed { color: #b3261e; font-weight: 600; }
text { font: 13px system-ui, sans-serif; fill: #222; } rect { fill: #3b6ea5; } rect.peer { fill: #b8bec6; }
"""


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole file."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Benchmarks</title><style>{STYLE}</style>'
    yield "<h1>Benchmarks</h1><p>Written by <code>make bench</code>. What the figures mean: docs/performance.md.</p>"
    for name, figure in found.items():
        yield f'<h2 id="{escape(name)}">{escape(figure["title"])}</h2>'
        if figure["quick"]:
            yield '<p class="missed">A quick run: it shows that the benchmark works, and nothing else.</p>'
        yield from _bars(figure["bars"], figure["unit"])
        yield from _table(figure["rows"])
        yield "<ul>"
        for verdict in figure["verdicts"]:
            kind = "met" if verdict["met"] else "missed"
            goal = f"{'≤' if verdict['at_most'] else '≥'} {verdict['goal']:g}"
            what = f"{verdict['what']}: {verdict['value']:g}, goal {goal}"
            yield f'<li>{escape(what)} <span class="{kind}">{kind}</span></li>'
        yield from (f"<li>{escape(note)}</li>" for note in figure["notes"])
        yield "</ul>"
        yield f"<small>{escape(', '.join(f'{what} {value}' for what, value in figure['machine'].items()))}</small>"
    yield "</html>"


def _bars(bars: Sequence[Sequence[Any]], unit: str) -> Iterator[str]:
    most = max((value for _, value in bars), default=0) or 1
    yield f'<svg width="{LABEL + WIDE + 120}" height="{HIGH * len(bars)}" role="img" aria-label="{escape(unit)}">'
    for number, (label, value) in enumerate(bars):
        top, width = number * HIGH, max(1, value / most * WIDE)
        peer = ' class="peer"' if label.startswith(("Powertools", "powertools", "claim", "by hand")) else ""
        yield f'<text x="{LABEL - 8}" y="{top + 16}" text-anchor="end">{escape(label)}</text>'
        yield f'<rect{peer} x="{LABEL}" y="{top + 4}" width="{width:.1f}" height="{HIGH - 8}"/>'
        yield f'<text x="{LABEL + width + 6:.1f}" y="{top + 16}">{value:,.4g}{f" {unit}" * (number == 0)}</text>'
    yield "</svg>"


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns = columns_of(rows)
    numeric = {column for column in columns if any(isinstance(row.get(column), int | float) for row in rows)}
    cells = [(column, ' class="n"' if column in numeric else "") for column in columns]
    yield "<table><tr>" + "".join(f"<th{kind}>{escape(column)}</th>" for column, kind in cells) + "</tr>"
    for row in rows:
        inner = "".join(f"<td{kind}>{escape(spelled(row.get(column, '')))}</td>" for column, kind in cells)
        yield f"<tr>{inner}</tr>"
    yield "</table>"
