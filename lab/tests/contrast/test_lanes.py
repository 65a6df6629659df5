"""Lanes share nothing but the orders: outputs, addresses and mails are told apart."""

from pathlib import Path

import pytest
from tools.domain import an_order
from tools.local.observe import Mail
from tools.local.running import Running

from lab.contrast.collect import orders_of
from lab.demo.audit import Expected
from lab.demo.lanes import LANES, NAIVE, OURS, POWERTOOLS, Lane

RUNNING = Running(
    "http://127.0.0.1:4567",
    {"OrdersQueueUrl": "q", "NaiveOrdersQueueUrl": "q-n", "PowertoolsOrdersQueueUrl": "q-p", "ApiUrl": "a"},
    Path(),
)


def mail_to(address: str) -> Mail:
    return Mail((address,), "", "", "m-1")


@pytest.mark.parametrize(("lane", "queue"), [(OURS, "q"), (NAIVE, "q-n"), (POWERTOOLS, "q-p")])
def test_a_lane_sees_its_own_outputs_under_the_names_of_ours(lane: Lane, queue: str) -> None:
    assert lane.of(RUNNING).outputs["OrdersQueueUrl"] == queue


def test_ours_has_none_of_the_other_lanes_outputs() -> None:
    assert not [name for name in OURS.of(RUNNING).outputs if name.startswith((NAIVE.prefix, POWERTOOLS.prefix))]


def test_a_lane_without_an_api_has_none_of_ours() -> None:
    assert NAIVE.of(RUNNING).outputs == {"OrdersQueueUrl": "q-n"}


def test_the_same_order_goes_to_every_lane_under_its_id_with_an_address_of_the_lanes_own() -> None:
    order = an_order("buyer-1@example.com")
    events = [lane.event("ord_1", order) for lane in LANES]
    assert {event["data"]["order_id"] for event in events} == {"ord_1"}
    assert [event["data"]["customer"]["email"] for event in events] == [
        "buyer-1@example.com",
        "buyer-1+naive@example.com",
        "buyer-1+powertools@example.com",
    ]
    assert all(
        {**event["data"], "order_id": "", "customer": {}} == {**order, "order_id": "", "customer": {}}
        for event in events
    )


def test_each_mail_belongs_to_one_lane() -> None:
    addresses = [lane.address(f"{name}@example.com") for lane in LANES for name in ("buyer-1", "naive", "a+tag")]
    mails = [mail_to(address) for address in addresses]
    assert [lane.mails(mails) for lane in LANES] == [mails[:3], mails[3:6], mails[6:]]


def test_what_is_expected_of_an_order_names_the_lanes_address() -> None:
    order = Expected("ord_1", "buyer-1@example.com", 2500, "EUR", pays=True)
    assert OURS.expected(order) == order
    assert NAIVE.expected(order).email == "buyer-1+naive@example.com"


def test_a_message_tells_its_order_and_garbage_tells_none() -> None:
    bodies = ['{"data": {"order_id": "ord_1"}}', "no JSON", '{"data": {}}', "[]", '{"data": {"order_id": 5}}']
    assert orders_of({"Body": body} for body in bodies) == {"ord_1"}
