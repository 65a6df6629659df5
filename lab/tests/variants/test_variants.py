"""Variants share nothing but the orders: outputs, addresses and emails differ."""

from pathlib import Path

import pytest
from tools.domain import an_order
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import Mail

from lab.variants import NAIVE, POWERTOOLS, THIS_REPO, VARIANTS, Variant
from lab.variants.observation import orders_of

RUNNING = LocalDeployment(
    "http://127.0.0.1:4567",
    {"OrdersQueueUrl": "q", "NaiveOrdersQueueUrl": "q-n", "PowertoolsOrdersQueueUrl": "q-p", "ApiUrl": "a"},
    Path(),
)


def mail_to(address: str) -> Mail:
    return Mail((address,), "", "", "m-1")


@pytest.mark.parametrize(("variant", "queue"), [(THIS_REPO, "q"), (NAIVE, "q-n"), (POWERTOOLS, "q-p")])
def test_a_variant_sees_its_own_outputs_under_the_names_of_ours(variant: Variant, queue: str) -> None:
    assert variant.of(RUNNING).outputs["OrdersQueueUrl"] == queue


def test_the_same_order_goes_to_every_variant_under_its_id_with_an_address_of_the_variants_own() -> None:
    order = an_order("buyer-1@example.com")
    events = [variant.event("ord_1", order) for variant in VARIANTS]
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


def test_each_mail_belongs_to_one_variant() -> None:
    addresses = [
        variant.address(f"{name}@example.com") for variant in VARIANTS for name in ("buyer-1", "naive", "a+tag")
    ]
    mails = [mail_to(address) for address in addresses]
    assert [variant.mails(mails) for variant in VARIANTS] == [mails[:3], mails[3:6], mails[6:]]


def test_a_message_tells_its_order_and_garbage_tells_none() -> None:
    bodies = ['{"data": {"order_id": "ord_1"}}', "no JSON", '{"data": {}}', "[]", '{"data": {"order_id": 5}}']
    assert orders_of({"Body": body} for body in bodies) == {"ord_1"}
