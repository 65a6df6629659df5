"""A kill counts only where the core itself found, later, that a try had been cut short."""

from typing import Any

import pytest

from demo.kills import Kill

KILL = Kill("Payment", (4711,), {"payment.charge#ord_1": "mine"})


@pytest.mark.parametrize(
    ("record", "proven"),
    [
        ({"owner": "next", "uncertain": True}, True),
        ({"owner": "mine", "uncertain": False}, False),  # it committed before it died
        ({"owner": "next", "uncertain": False}, False),  # it gave its claim back before it died
    ],
)
def test_only_a_takeover_as_uncertain_proves_it(record: dict[str, Any], proven: bool) -> None:
    assert KILL.is_proven_by({"payment.charge#ord_1": record}) is proven


def test_a_record_that_is_gone_proves_nothing() -> None:
    assert KILL.is_proven_by({}) is False
