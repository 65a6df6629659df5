"""Render all figures as bars and tables in one HTML file (build/benchmarks.html)."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from lab.benchmarks.table import columns_of, spelled
from lab.svg import bars

PEERS = ("Powertools", "powertools", "claim", "by hand")  # drawn in grey
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 2.5rem; font-size: 1.1rem; }
table { border-collapse: collapse; font-size: 13px; margin: .8rem 0; }
td, th { padding: .15rem .7rem .15rem 0; text-align: left; border-bottom: 1px solid #ddd; font-weight: normal; }
th { color: #666; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
ul { color: #555; font-size: 13px; padding-left: 1.2rem; } small { color: #777; }
.met { color: #1a7f37; } .missed { color: #b3261e; font-weight: 600; }
text { font: 13px system-ui, sans-serif; fill: #222; }
"""


def page(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """The page."""
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Benchmarks</title><style>{STYLE}</style>'
    yield "<h1>Benchmarks</h1><p>Written by <code>make bench</code>. lab/docs/performance.md explains the figures.</p>"
    for name, figure in figures.items():
        yield f'<h2 id="{escape(name)}">{escape(figure["title"])}</h2>'
        if figure["quick"]:
            yield '<p class="missed">A quick run: these numbers say nothing.</p>'
        yield bars(figure["bars"], figure["unit"], [label.startswith(PEERS) for label, _ in figure["bars"]])
        yield from _table(figure["rows"])
        yield "<ul>"
        for goal_result in figure["goals"]:
            kind = "met" if goal_result["met"] else "missed"
            goal = f"{'≤' if goal_result['at_most'] else '≥'} {goal_result['goal']:g}"
            what = f"{goal_result['what']}: {goal_result['value']:g}, goal {goal}"
            yield f'<li>{escape(what)} <span class="{kind}">{kind}</span></li>'
        yield from (f"<li>{escape(note)}</li>" for note in figure["notes"])
        yield "</ul>"
        yield f"<small>{escape(', '.join(f'{what} {value}' for what, value in figure['machine'].items()))}</small>"
    yield "</html>"


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns = columns_of(rows)
    numeric = {column for column in columns if any(isinstance(row.get(column), int | float) for row in rows)}
    cells = [(column, ' class="n"' if column in numeric else "") for column in columns]
    yield "<table><tr>" + "".join(f"<th{kind}>{escape(column)}</th>" for column, kind in cells) + "</tr>"
    for row in rows:
        inner = "".join(f"<td{kind}>{escape(spelled(row.get(column, '')))}</td>" for column, kind in cells)
        yield f"<tr>{inner}</tr>"
    yield "</table>"
