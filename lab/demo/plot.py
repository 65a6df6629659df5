"""A column for each order: charges above a line, emails below. Shapes carry the meaning, and colours only help."""

from collections.abc import Mapping
from typing import Any

from lab.svg import circle, cross, drawing, horizontal, square

SIZE = 10  # of a mark, in pixels
STEP = SIZE + 2
MAX_MARKS = 7  # in a column


def effects_plot(variant: Mapping[str, Any]) -> str:
    """The columns of all orders of a variant."""
    columns = variant["effects"]
    above = min(MAX_MARKS, max((each["charges"] for each in columns), default=1)) or 1
    below = min(MAX_MARKS, max((each["mails"] for each in columns), default=1)) or 1
    unexplained = set(variant["unexplained_failures"]["mailed_twice"])
    drawn = "".join(_column(each, above, below, each["order_id"] not in unexplained) for each in columns)
    return f'<div class="plot">{drawn}</div>'


def legend() -> str:
    """The meaning of the marks."""
    marks = (
        (_square(1, "ok"), "charged once"),
        (_square(1, "extra") + cross(1, SIZE), "charged again"),
        (_square(1, "missing"), "not charged"),
        (_dash(1), "declined: no charge is right"),
        (_circle(1, "ok"), "emailed once"),
        (_circle(1, "extra") + cross(1, SIZE), "emailed again"),
        (_circle(1, "explained"), "emailed again, with a known cause"),
        (_circle(1, "missing"), "not emailed"),
    )
    spans = (f"<span>{drawing(STEP, STEP, mark, words)}{words}</span>" for mark, words in marks)
    return f'<div class="legend">{"".join(spans)}</div>'


def _column(order: Mapping[str, Any], above: int, below: int, explained: bool) -> str:
    line = above * STEP + 2
    marks = [horizontal(line, 0, STEP)]
    for n in range(min(order["charges"], MAX_MARKS)):
        y = line - (n + 1) * STEP
        marks.append(_square(y, "ok") if n == 0 else _square(y, "extra") + cross(y, SIZE))
    if not order["charges"]:
        marks.append(_square(line - STEP, "missing") if order["pays"] else _dash(line - STEP))
    for n in range(min(order["mails"], MAX_MARKS)):
        y = line + n * STEP + 2
        again = _circle(y, "explained") if explained else _circle(y, "extra") + cross(y, SIZE)
        marks.append(_circle(y, "ok") if n == 0 else again)
    if not order["mails"]:
        marks.append(_circle(line + 2, "missing"))
    label = f"{order['order_id']}: {order['charges']} charges, {order['mails']} emails"
    return drawing(STEP, line + below * STEP + 3, "".join(marks), label)


def _square(y: float, kind: str) -> str:
    return square(y, SIZE, kind)


def _circle(y: float, kind: str) -> str:
    return circle(y, SIZE, kind)


def _dash(y: float) -> str:
    return horizontal(y + SIZE // 2, 3, SIZE - 1)
