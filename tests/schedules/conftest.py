"""The environment for all tests of schedules, and the table of what was explored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.schedules.environment import ExplorerEnvironment, explorer_environment
from tests.schedules.table import table

WRITTEN = Path("build/schedules.json")

_rows: list[dict[str, object]] = []


@pytest.fixture(scope="module")
def environment() -> Iterator[ExplorerEnvironment]:
    """Install the explorer's environment for the tests of one module."""
    with explorer_environment() as it:
        yield it


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Gather the rows that tests have recorded, from xdist's workers too."""
    if report.when == "call":
        _rows.extend(row for name, row in report.user_properties if name == "explored" and isinstance(row, dict))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what was explored, and write it down."""
    if _rows:
        rows = sorted(_rows, key=lambda row: (str(row["scenario"]), str(row["faults"])))
        terminalreporter.write_line("")
        for line in table(rows):
            terminalreporter.write_line(line)
        WRITTEN.parent.mkdir(exist_ok=True)
        WRITTEN.write_text(json.dumps(rows, indent=2))
        terminalreporter.write_line(f"written to {WRITTEN}")
