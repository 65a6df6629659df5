"""Rows as a table of plain text."""

import sys
from collections.abc import Iterator, Mapping, Sequence


def table(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield one line per row, after a line with the names of the columns. Numbers are right-aligned."""
    columns = list(rows[0])
    cells = [[str(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(map(len, [column, *found])) for column, found in zip(columns, zip(*cells, strict=True), strict=True)]
    for line, first in ((columns, True), *((line, False) for line in cells)):
        padded = [
            cell.ljust(width) if (not first and not cell[:1].isdigit()) or position == 0 else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
