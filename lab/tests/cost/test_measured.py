"""The stored counts are what the handlers do today. `python -m lab.cost measure` stores them anew."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.harness.driver import Pipeline

from lab.cost.counts import PATH, WRITE, stored
from lab.cost.measurement import measure

LOGS = "log_bytes"  # a log line names its line in the source, so that other lines move it by a digit


def test_the_stored_counts_are_what_a_run_measures(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = measure(pipeline, monkeypatch)
    if WRITE in os.environ:
        PATH.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
    counted, known = dict(_flat(measured)), dict(_flat(stored()))
    assert {name: count for name, count in counted.items() if LOGS not in name} == {
        name: count for name, count in known.items() if LOGS not in name
    }
    assert {name: count for name, count in counted.items() if LOGS in name} == pytest.approx(
        {name: count for name, count in known.items() if LOGS in name}, rel=0.05
    )


def _flat(counts: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for name, found in counts.items():
        if isinstance(found, dict):
            yield from _flat(found, f"{at}{name}/")
        else:
            yield f"{at}{name}", found
