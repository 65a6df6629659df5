"""The arithmetic, on a table of three prices."""

from typing import Any

import pytest

from lab.cost import this_repo
from lab.cost.counts import stored
from lab.cost.pricing import prices
from lab.cost.this_repo import Load

TABLE: dict[str, Any] = {
    "read_on": "2026-01-01",
    "prices": {
        "write_unit": {"per": 1e6, "usd": {"here": 2.0, "there": 3.0}, "unchecked": ["there"]},
        "sqs_request": {"per": 1, "usd": {"here": 0.5, "there": 0.5}, "unchecked": []},
    },
    "temporal_actions": {
        "included": 1000,
        "plan_month": 10.0,
        "plan_share": 0.5,
        "tiers": [[1000, 1e6], [3000, 5e5], [4000, 1e5]],
    },
}
AT = prices("us-east-1")


def test_a_bill_is_its_amounts_times_their_prices() -> None:
    assert prices("here", TABLE).cost({"write_unit": 3_000_000, "sqs_request": 2}) == 7.0
    assert prices("there", TABLE).cost({"write_unit": 3_000_000, "sqs_request": 2}) == 10.0


@pytest.mark.parametrize(
    ("actions", "storage", "usd"),
    [
        (1000, 0.0, 10.0),  # all included: the plan alone
        (1500, 0.0, 500 + 250.0),  # above it, half of the usage is more than the plan
        (2500, 0.0, (1000 + 250) * 1.5),  # the second tier is half the price
        (1010, 5.0, 10 + 5 + 10.0),
        (4500, 0.0, (1000 + 2000 / 2 + 500 / 10) * 1.5),
        (9000, 0.0, (1000 + 2000 / 2 + 5000 / 10) * 1.5),  # beyond the last tier its price goes on
    ],
)
def test_temporals_actions_go_through_its_tiers(actions: float, storage: float, usd: float) -> None:
    assert prices("here", TABLE).temporal_month(actions, storage) == pytest.approx(usd)


def test_a_duplicate_costs_its_share_of_being_told_so() -> None:
    def each(rate: float) -> float:
        return sum(AT.cost(bill) for bill in this_repo.stages(stored(), Load(1, rate)).values())

    first, all_twice = each(0), each(1)
    assert each(0.5) == pytest.approx((first + all_twice) / 2)
    assert first < all_twice < 1.5 * first


def test_a_months_cost_is_its_orders_and_what_none_would_cost() -> None:
    empty = this_repo.month_usd(stored(), Load(0, 0), AT)
    assert empty == pytest.approx(AT.cost(this_repo.fixed(stored())))
    assert this_repo.month_usd(stored(), Load(1000, 0), AT) > empty


def test_the_units_for_atomicity_are_half_of_what_transactions_write() -> None:
    for counts in stored()["this-repo"]["alone"]["first"].values():
        if "dynamodb.TransactWriteItems" in counts:
            alone = counts["write_units"] - 2 * counts["write_units_for_atomicity"]
            assert alone == counts.get("dynamodb.UpdateItem", 0)  # the claim, the intent: a unit each
