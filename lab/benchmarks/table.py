"""Results as text: for the terminal, and as Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def shown(figure: Mapping[str, Any]) -> Iterator[str]:
    """One figure: its rows, and what they mean for its goals."""
    yield f"\n{figure['title']}"
    yield from _aligned(figure["rows"])
    for verdict in figure["verdicts"]:
        yield f"  {_mark(verdict)} {verdict['what']}: {verdict['value']:g} (goal {_goal(verdict)})"


def summary(figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """All goals, met or missed."""
    verdicts = [verdict for figure in figures for verdict in figure["verdicts"]]
    missed = [verdict for verdict in verdicts if not verdict["met"]]
    yield f"\n{len(verdicts) - len(missed)} of {len(verdicts)} goals met"
    for verdict in missed:
        yield f"  {_mark(verdict)} {verdict['what']}: {verdict['value']:g} (goal {_goal(verdict)})"


def markdown(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table; numbers to the right."""
    columns = columns_of(rows)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'|'.join('---:' if _is_number(rows, column) else '---' for column in columns)}|"
    for row in rows:
        yield f"| {' | '.join(spelled(row.get(column, '')) for column in columns)} |"


def verdict_rows(figure: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The goals of a figure as rows."""
    return [
        {"goal of": v["what"], "goal": _goal(v), "measured": f"{v['value']:g}", "": "met" if v["met"] else "**missed**"}
        for v in figure["verdicts"]
    ]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """All columns, in the order in which they come up."""
    return list(dict.fromkeys(column for row in rows for column in row))


def spelled(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _aligned(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns = columns_of(rows)
    lines = [columns, *([spelled(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield (
            "  "
            + "  ".join(
                cell.rjust(width) if _is_number(rows, column) else cell.ljust(width)
                for cell, width, column in zip(line, widths, columns, strict=True)
            ).rstrip()
        )


def _is_number(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return any(isinstance(row.get(column), int | float) for row in rows)


def _goal(verdict: Mapping[str, Any]) -> str:
    return f"{'≤' if verdict['at_most'] else '≥'} {verdict['goal']:g}"


def _mark(verdict: Mapping[str, Any]) -> str:
    return "✓" if verdict["met"] else "✗"
