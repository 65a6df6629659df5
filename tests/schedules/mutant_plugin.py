"""A pytest plugin that breaks the code before tests are collected.

Usage: `MUTANT=<name> pytest -p tests.schedules.mutant_plugin tests/unit/…`
"""

import os
from contextlib import AbstractContextManager

from tests.schedules.mutants import MUTANTS

_applied: list[AbstractContextManager[None]] = []


def pytest_configure() -> None:
    """Apply the mutant that the environment names."""
    applied = MUTANTS[os.environ["MUTANT"]].applied()
    applied.__enter__()
    _applied.append(applied)


def pytest_unconfigure() -> None:
    """Restore the code."""
    while _applied:
        _applied.pop().__exit__(None, None, None)
