"""The page is what the counts, the prices and the assumptions say today."""

import re
from pathlib import Path

from shared.orders.row import OPEN_SHARDS
from stacks.settings import AWS_TIMES

from lab.cost import assumptions, page
from lab.cost.counts import stored

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
    assert page.PATH.read_text() == page.page(stored())


def test_what_is_assumed_of_our_own_settings_is_so() -> None:
    memory = re.search(r"^MEMORY_MB = (\d+)$", (ROOT / "stacks/constructs/function.py").read_text(), re.M)
    assert memory
    assert int(memory[1]) / 1024 == assumptions.MEMORY_GB
    assert assumptions.MONTH_S / 60 / AWS_TIMES.sweep_every_min == assumptions.SWEEPS_PER_MONTH
    assert AWS_TIMES.record_ttl_s / assumptions.MONTH_S == assumptions.RECORD_MONTHS
    assert stored()["sweep"]["dynamodb.Query"] == OPEN_SHARDS
