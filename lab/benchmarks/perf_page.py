"""docs/performance.md: its prose is written by hand, its numbers are put between two marks by a run."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.benchmarks.table import markdown, verdict_rows

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- measured: written by make bench -->", "<!-- end of measured -->"


def fill(found: Mapping[str, Mapping[str, Any]], page: Path = PAGE) -> None:
    """Put the results between the marks. Raises ValueError where a mark is gone, and for a quick run's."""
    if quick := [name for name, figure in found.items() if figure["quick"]]:
        raise ValueError(f"{', '.join(quick)}: measured by a quick run, which says nothing")
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page.name} has lost its marks {BEGIN} and {END}")
    page.write_text(before + begin + "\n\n" + "\n".join(_lines(found)) + "\n\n" + end + after)


def _lines(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, figure in found.items():
        yield f"### {name}: {figure['title']}\n"
        yield from markdown(figure["rows"])
        yield ""
        if figure["verdicts"]:
            yield from markdown(verdict_rows(figure))
            yield ""
        yield from (f"- {note}" for note in figure["notes"])
        yield ""
        about = figure["machine"]
        yield ", ".join(f"{what} {value}" for what, value in about.items()) + ".\n"
