"""A body nested deeper than any parser follows is somebody's mistake, or somebody's try."""

import json

import pytest

from functions.order.handler import handler, place
from shared.idempotency import Permanent
from tests.harness.decoding import decode
from tests.harness.moto_world import World

DEEP = "[" * 30_000 + "]" * 30_000


def message(data: str) -> str:
    return f'{{"specversion": "1.0", "id": "ord_1/x", "source": "s", "type": "order.requested", "data": {data}}}'


@pytest.mark.parametrize("data", [DEEP, f'{{"note": {DEEP}}}', f'{{"customer": {DEEP}}}'])
def test_a_body_that_is_nested_too_deep_can_not_be_parsed(data: str) -> None:
    with pytest.raises(Permanent, match="unparsable"):
        decode(message(data), place.kinds)


def test_a_body_that_is_nested_too_deep_is_parked_and_its_neighbour_is_done(world: World) -> None:
    order = {
        "order_id": "ord_1",
        "customer": {"name": "A. Buyer", "email": "buyer@example.com"},
        "currency": "EUR",
        "items": [{"sku": "A-1", "quantity": 2, "unit_price": 1250}],
        "payment_method": "pm_card_visa",
    }
    bodies = [message(DEEP), message(json.dumps(order))]
    records = [{"messageId": f"m-{n}", "receiptHandle": f"r-{n}", "body": body} for n, body in enumerate(bodies)]

    assert handler({"Records": records}, world.context()) == {"batchItemFailures": []}

    assert world.row("ord_1")
    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == "unparsable"
