"""Render results as text for the terminal, and as Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def shown(figure: Mapping[str, Any]) -> Iterator[str]:
    """The rows of one figure and its goals."""
    yield f"\n{figure['title']}"
    yield from _aligned(figure["rows"])
    for goal_result in figure["goals"]:
        yield f"  {_mark(goal_result)} {goal_result['what']}: {goal_result['value']:g} (goal {_goal(goal_result)})"


def summary(figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """All goals, met or missed."""
    goals = [goal_result for figure in figures for goal_result in figure["goals"]]
    missed = [goal_result for goal_result in goals if not goal_result["met"]]
    yield f"\n{len(goals) - len(missed)} of {len(goals)} goals met"
    for goal_result in missed:
        yield f"  {_mark(goal_result)} {goal_result['what']}: {goal_result['value']:g} (goal {_goal(goal_result)})"


def markdown(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table with numbers aligned to the right."""
    columns = columns_of(rows)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'|'.join('---:' if _is_number(rows, column) else '---' for column in columns)}|"
    for row in rows:
        yield f"| {' | '.join(spelled(row.get(column, '')) for column in columns)} |"


def goal_rows(figure: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The goals of a figure as rows."""
    return [
        {"goal of": v["what"], "goal": _goal(v), "measured": f"{v['value']:g}", "": "met" if v["met"] else "**missed**"}
        for v in figure["goals"]
    ]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """All columns, in order of first use."""
    return list(dict.fromkeys(column for row in rows for column in row))


def spelled(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _aligned(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns = columns_of(rows)
    lines = [columns, *([spelled(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for network in lines:
        yield (
            "  "
            + "  ".join(
                cell.rjust(width) if _is_number(rows, column) else cell.ljust(width)
                for cell, width, column in zip(network, widths, columns, strict=True)
            ).rstrip()
        )


def _is_number(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return any(isinstance(row.get(column), int | float) for row in rows)


def _goal(goal_result: Mapping[str, Any]) -> str:
    return f"{'≤' if goal_result['at_most'] else '≥'} {goal_result['goal']:g}"


def _mark(goal_result: Mapping[str, Any]) -> str:
    return "✓" if goal_result["met"] else "✗"
