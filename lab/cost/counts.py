"""The stored counts of the last measurement."""

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("counts.json")
WRITE = "BENCHMARKS_COST_WRITE"  # if set, the measuring test stores its counts


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found
