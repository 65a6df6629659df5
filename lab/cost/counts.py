"""The counts of the last measuring run, as stored."""

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("counts.json")
WRITE = "BENCHMARKS_COST_WRITE"  # set: the test that measures stores what it found


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found
