"""Write measured numbers into lab/docs/performance.md, between two marks. The rest is written by hand."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.benchmarks.table import goal_rows, markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- measured: written by make bench -->", "<!-- end of measured -->"


def fill(figures: Mapping[str, Mapping[str, Any]], page: Path = PAGE) -> None:
    """Write the results between the marks. Raises ValueError if a mark is missing, and for a quick run."""
    if quick := [name for name, figure in figures.items() if figure["quick"]]:
        raise ValueError(f"{', '.join(quick)}: measured by a quick run")
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page.name} needs the marks {BEGIN} and {END}")
    page.write_text(before + begin + "\n\n" + "\n".join(_lines(figures)) + "\n\n" + end + after)


def _lines(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, figure in figures.items():
        yield f"### {name}: {figure['title']}\n"
        yield from markdown(figure["rows"])
        yield ""
        if figure["goals"]:
            yield from markdown(goal_rows(figure))
            yield ""
        yield from (f"- {note}" for note in figure["notes"])
        yield ""
        about = figure["machine"]
        yield ", ".join(f"{what} {value}" for what, value in about.items()) + ".\n"
