"""The arithmetic, on a table of three prices."""

from typing import Any

import pytest

from lab.cost import assumptions as assumed
from lab.cost import ours, peers, table
from lab.cost.counts import stored
from lab.cost.ours import Load
from lab.cost.pricing import Prices, UnknownRegion, bill_of, idle_polls, prices, times, total, traces_a_month

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


def test_a_unit_without_a_price_is_no_free_unit() -> None:
    with pytest.raises(KeyError, match="read_unit"):
        prices("here", TABLE).cost({"read_unit": 1})


def test_prices_that_were_not_seen_in_print_are_named() -> None:
    assert prices("here", TABLE).unchecked == ()
    assert prices("there", TABLE).unchecked == ("write_unit",)


def test_an_unknown_region_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownRegion, match="here, there"):
        prices("nowhere", TABLE)


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


def test_a_bill_is_for_one_message_of_the_batch() -> None:
    counts = {"invocations": 1, "write_units": 40, "index_units": 20, "read_units": 10, "sqs_requests": 2}
    bill = bill_of(counts, 10, queue=True)
    assert bill["write_unit"] == 6
    assert bill["read_unit"] == 1
    assert bill["lambda_request"] == 0.1
    assert bill["sqs_request"] == 0.2 + 0.1 * assumed.POLLER_REQUESTS


def test_records_side_by_side_take_the_time_of_one() -> None:
    one = bill_of({"invocations": 1, "provider.calls": 2}, 1)["lambda_gb_second"]
    ten = bill_of({"invocations": 1, "provider.calls": 20}, 10, at_once=10)["lambda_gb_second"]
    in_turn = bill_of({"invocations": 1, "provider.calls": 20}, 10)["lambda_gb_second"]
    assert ten == pytest.approx(one / 10)
    assert in_turn > 9 * ten
    assert one == pytest.approx(
        assumed.MEMORY_GB * (2 * assumed.LATENCY_MS["provider.calls"] + assumed.OVERHEAD_MS) / 1000
    )


def test_bills_add_up_and_scale() -> None:
    assert total([{"a": 1.0}, {"a": 2.0, "b": 1.0}]) == {"a": 3.0, "b": 1.0}
    assert times({"a": 2.0}, 0.5) == {"a": 1.0}


def test_a_trace_a_second_and_five_percent_of_the_rest_are_recorded() -> None:
    assert traces_a_month(1000) == 1000
    assert traces_a_month(assumed.MONTH_S + 1000) == assumed.MONTH_S + 50


def test_idle_polls_are_paid_for_each_queue() -> None:
    assert idle_polls(3) == 3 * idle_polls(1) > 0


def test_a_duplicate_costs_its_share_of_being_told_so() -> None:
    def each(rate: float) -> float:
        return sum(AT.cost(bill) for bill in ours.stages(stored(), Load(1, rate)).values())

    first, all_twice = each(0), each(1)
    assert each(0.5) == pytest.approx((first + all_twice) / 2)
    assert first < all_twice < 1.5 * first


def test_the_columns_of_a_stage_are_all_of_it() -> None:
    columns = {unit for units in table.COLUMNS.values() for unit in units}
    for stage, bill in ours.stages(stored(), Load(1, 1)).items():
        assert set(bill) <= columns, stage


def test_a_months_cost_is_its_orders_and_what_none_would_cost() -> None:
    empty = ours.month_usd(stored(), Load(0, 0), AT)
    assert empty == pytest.approx(AT.cost(ours.fixed(stored())))
    assert ours.month_usd(stored(), Load(1000, 0), AT) > empty


def test_the_units_for_atomicity_are_half_of_what_transactions_write() -> None:
    for counts in stored()["ours"]["alone"]["first"].values():
        if "dynamodb.TransactWriteItems" in counts:
            alone = counts["write_units"] - 2 * counts["write_units_for_atomicity"]
            assert alone == counts.get("dynamodb.UpdateItem", 0)  # the claim, the intent: a unit each


def test_what_an_engine_is_compared_with_leaves_the_mail_out_for_all() -> None:
    free_mail = Prices(AT.region, AT.read_on, {**AT.usd, "mail": 0.0, "s3_put": 0.0}, (), AT.temporal)
    load = Load(1_000_000, 0.01)
    assert peers.month_usd(stored(), load, free_mail) == peers.month_usd(stored(), load, AT)


def test_a_step_without_its_guard_does_what_the_business_needs() -> None:
    for step in ours.QUEUES:
        assert peers.bare(stored(), step)["write_units"] == 1
    assert peers.bare(stored(), "email")["sesv2.SendEmail"] == 1
    assert peers.bare(stored(), "payment")["provider.calls"] == 2


def test_every_region_has_every_price() -> None:
    regions = ("us-east-1", "eu-central-1", "eu-west-1")
    assert len({frozenset(prices(region).usd) for region in regions}) == 1
    assert all(usd > 0 for region in regions for usd in prices(region).usd.values())
