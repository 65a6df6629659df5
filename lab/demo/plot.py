"""The plot: a column for each order, its charges above a line, its mails below. Shapes tell, and colour only helps."""

from collections.abc import Mapping
from html import escape
from typing import Any

SIZE = 10  # of a mark, in pixels
STEP = SIZE + 2
MOST = 7  # marks in a column; more are a number


def effects_plot(lane: Mapping[str, Any]) -> str:
    """All orders of a lane."""
    columns = lane["effects"]
    above = min(MOST, max((each["charges"] for each in columns), default=1)) or 1
    below = min(MOST, max((each["mails"] for each in columns), default=1)) or 1
    again = set(lane["unpromised"]["mailed_twice"])
    drawn = "".join(_column(each, above, below, each["order_id"] not in again) for each in columns)
    return f'<div class="plot">{drawn}</div>'


def legend() -> str:
    """What the marks mean."""
    marks = (
        (_square(1, "ok"), "charged once"),
        (_square(1, "extra") + _cross(1), "charged again"),
        (_square(1, "missing"), "not charged"),
        (_dash(1), "declined: no charge is right"),
        (_circle(1, "ok"), "mailed once"),
        (_circle(1, "extra") + _cross(1), "mailed again"),
        (_circle(1, "told"), "mailed again, as the promise says"),
        (_circle(1, "missing"), "not mailed"),
    )
    return (
        '<div class="legend">'
        + "".join(f'<span><svg width="{STEP}" height="{STEP}">{mark}</svg>{words}</span>' for mark, words in marks)
        + "</div>"
    )


def _column(order: Mapping[str, Any], above: int, below: int, explained: bool) -> str:
    line = above * STEP + 2
    marks = [f'<line class="axis" x1="0" x2="{STEP}" y1="{line}" y2="{line}"/>']
    for n in range(min(order["charges"], MOST)):
        y = line - (n + 1) * STEP
        marks.append(_square(y, "ok") if n == 0 else _square(y, "extra") + _cross(y))
    if not order["charges"]:
        marks.append(_square(line - STEP, "missing") if order["pays"] else _dash(line - STEP))
    for n in range(min(order["mails"], MOST)):
        y = line + n * STEP + 2
        again = _circle(y, "told") if explained else _circle(y, "extra") + _cross(y)
        marks.append(_circle(y, "ok") if n == 0 else again)
    if not order["mails"]:
        marks.append(_circle(line + 2, "missing"))
    said = f"{order['order_id']}: {order['charges']} charges, {order['mails']} mails"
    height = line + below * STEP + 3
    return (
        f'<svg width="{STEP}" height="{height}" role="img" aria-label="{escape(said)}"><title>{escape(said)}</title>'
        f"{''.join(marks)}</svg>"
    )


def _square(y: int, kind: str) -> str:
    return f'<rect class="{kind}" x="1.5" y="{y + 0.5}" width="{SIZE - 1}" height="{SIZE - 1}"/>'


def _circle(y: int, kind: str) -> str:
    half = SIZE / 2
    return f'<circle class="{kind}" cx="{half + 1}" cy="{y + half}" r="{half - 1}"/>'


def _cross(y: int) -> str:
    far = SIZE - 2
    return f'<path class="extra" d="M3.5 {y + 2.5}L{far} {y + far - 1}M{far} {y + 2.5}L3.5 {y + far - 1}"/>'


def _dash(y: int) -> str:
    return f'<line class="axis" x1="3" x2="{SIZE - 1}" y1="{y + SIZE // 2}" y2="{y + SIZE // 2}"/>'
