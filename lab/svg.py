"""Inline SVG for the pages of lab/: marks, bars and lines. Nothing is fetched from anywhere."""

from collections.abc import Mapping, Sequence
from html import escape

LABEL_PX, BAR_PX, ROW_PX = 260, 460, 24
PLOT_PX, PLOT_HEIGHT_PX, AXIS_PX = 640, 220, 70
COLOURS = ("#4477aa", "#cc6677", "#228833")


def drawing(width: int, height: float, content: str, label: str) -> str:
    """A whole SVG element. `label` describes it for screen readers."""
    text = escape(label)
    return (
        f'<svg width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}" role="img" aria-label="{text}">'
        f"<title>{text}</title>{content}</svg>"
    )


def square(y: float, size: float, kind: str) -> str:
    """A square with its upper edge at `y`. `kind` is its class."""
    return f'<rect class="{kind}" x="1.5" y="{y + 0.5}" width="{size - 1}" height="{size - 1}"/>'


def circle(y: float, size: float, kind: str) -> str:
    """A circle with its upper edge at `y`. `kind` is its class."""
    return f'<circle class="{kind}" cx="{size / 2 + 1}" cy="{y + size / 2}" r="{size / 2 - 1}"/>'


def cross(y: float, size: float) -> str:
    """Two diagonals over a square or circle at `y`."""
    far = size - 2
    return f'<path class="extra" d="M3.5 {y + 2.5}L{far} {y + far - 1}M{far} {y + 2.5}L3.5 {y + far - 1}"/>'


def horizontal(y: float, start: float, end: float) -> str:
    """A horizontal line."""
    return f'<line class="axis" x1="{start}" x2="{end}" y1="{y}" y2="{y}"/>'


def bars(values: Sequence[tuple[str, float]], unit: str, is_muted: Sequence[bool]) -> str:
    """One bar a row, with its label and value. Muted bars are grey."""
    longest = max((value for _, value in values), default=0) or 1
    rows = []
    for number, ((label, value), muted) in enumerate(zip(values, is_muted, strict=True)):
        top, width = number * ROW_PX, max(1, value / longest * BAR_PX)
        shown = f"{value:,.4g}{f' {unit}' * (number == 0)}"
        rows.append(
            f'<text x="{LABEL_PX - 8}" y="{top + 16}" text-anchor="end">{escape(label)}</text>'
            f'<rect fill="{"#b8bec6" if muted else "#3b6ea5"}" x="{LABEL_PX}" y="{top + 4}" width="{width:.1f}" '
            f'height="{ROW_PX - 8}"/><text x="{LABEL_PX + width + 6:.1f}" y="{top + 16}">{escape(shown)}</text>'
        )
    return drawing(LABEL_PX + BAR_PX + 120, ROW_PX * len(values), "".join(rows), unit)


def lines(times_s: Sequence[float], series: Mapping[str, Sequence[float]], label: str) -> str:
    """Several series over time, with axes and a legend. Times in seconds."""
    end = times_s[-1] or 1
    top = max(1, *(max(values) for values in series.values()))
    height = PLOT_HEIGHT_PX - 20
    parts = [f'<path class="axis" fill="none" d="M{AXIS_PX} 20V{PLOT_HEIGHT_PX}H{PLOT_PX}"/>']
    for number, ((name, values), colour) in enumerate(zip(series.items(), COLOURS, strict=False)):
        points = " ".join(
            f"{AXIS_PX + time / end * (PLOT_PX - AXIS_PX):.1f},{PLOT_HEIGHT_PX - value / top * height:.1f}"
            for time, value in zip(times_s, values, strict=True)
        )
        parts.append(f'<polyline stroke="{colour}" points="{points}"/>')
        parts.append(f'<text x="{AXIS_PX + 10 + 90 * number}" y="14" style="fill:{colour}">{escape(name)}</text>')
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        y, x = PLOT_HEIGHT_PX - share * height + 4, AXIS_PX + share * (PLOT_PX - AXIS_PX)
        parts.append(f'<text x="{AXIS_PX - 6}" y="{y:.0f}" text-anchor="end">{share * top:,.0f}</text>')
        parts.append(f'<text x="{x:.0f}" y="{PLOT_HEIGHT_PX + 16}" text-anchor="{anchor}">{_time(share * end)}</text>')
    return drawing(PLOT_PX, PLOT_HEIGHT_PX + 30, "".join(parts), label)


def _time(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds >= 180 else f"{seconds:,.0f} s"
