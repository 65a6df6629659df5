"""The events of an order, each rule of them, and what is pinned for ever: fingerprints, ids and record keys."""

import copy
import json
from typing import Any

import pytest

from functions.api.create_order import request_order
from functions.email.handler import send
from functions.order.handler import place
from functions.payment.handler import charge
from shared.idempotency import Event, Permanent, fingerprint
from shared.orders.events import NewOrder, OrderDeclined, OrderPaid, OrderPlaced, OrderRequested
from shared.orders.money import MAX_AMOUNT
from tests.harness.decoding import decode
from tests.unit.orders.samples import DATA, order

FACTS = {"order_id": "ord_1", "currency": "EUR", "total": 2500}
EVENTS: dict[str, tuple[Event, str]] = {
    "order.requested": (order(), "ffe24a389d429d8bc7672bf8cc350d89aa0d73a7187def75940eb950333962d2"),
    "order.placed": (
        OrderPlaced(order_id="ord_1", currency="EUR", total=2500, payment_method="pm_card_visa"),
        "9d3b15af01a8039ff8a1c422c94d247952876807984844aa591a45c19d550588",
    ),
    "order.paid": (
        OrderPaid(order_id="ord_1", currency="EUR", total=2500, payment_intent="pi_1"),
        "0db10804c253b53467c1f89910430b450d1a8b69144cf8637c62ba0a927f6d05",
    ),
    "order.declined": (
        OrderDeclined(order_id="ord_1", currency="EUR", total=2500, payment_intent="pi_1", reason="card_declined"),
        "a1242e9dc37d557d61b355c393365a194c6709503e5fd7f0e6b0420a2f037146",
    ),
}


@pytest.mark.parametrize("kind", EVENTS)
def test_each_fingerprint_is_pinned_by_value(kind: str) -> None:
    event, pinned = EVENTS[kind]

    assert fingerprint(event) == f"v1:{pinned}"


@pytest.mark.parametrize("kind", EVENTS)
def test_each_events_id_is_its_order_and_its_type(kind: str) -> None:
    event, _ = EVENTS[kind]

    assert (event.type, event.id, event.source) == (kind, f"ord_1/{kind}", "effectively-once/orders")


def test_record_keys_are_pinned_for_ever() -> None:
    assert request_order.record_key(order()) == "order.request#ord_1"
    assert place.record_key(order()) == "order.place#ord_1"
    assert charge.record_key(EVENTS["order.placed"][0]) == "payment.charge#ord_1"  # type: ignore[arg-type]
    assert send.record_key(EVENTS["order.paid"][0]) == "email.send#ord_1"  # type: ignore[arg-type]
    assert send.record_key(EVENTS["order.declined"][0]) == "email.send#ord_1"  # type: ignore[arg-type]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good order with the field at `a.0.b` set, or left out for Ellipsis."""
    data = copy.deepcopy(DATA)
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    inner: Any = data
    for step in way:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return data


def read(data: dict[str, Any], kind: type[Event] = OrderRequested) -> Event:
    body = {"specversion": "1.0", "id": "i", "source": "s", "type": kind.type, "data": data}
    return decode(json.dumps(body), {kind.type: kind})[1]


def refused(data: dict[str, Any], kind: type[Event] = OrderRequested) -> str:
    with pytest.raises(Permanent) as error:
        read(data, kind)
    assert error.value.reason == "schema_invalid"
    return str(error.value)


def test_the_documented_order_is_taken_and_its_total_is_computed() -> None:
    event = read(DATA)

    assert event == order()
    assert isinstance(event, NewOrder)
    assert event.total == 2500


@pytest.mark.parametrize("path", [*DATA, "customer.name", "customer.email", "items.0.sku", "items.0.quantity"])
def test_a_field_that_must_be_there_must_be_there(path: str) -> None:
    assert path.split(".")[-1] in refused(changed(path, ...))
    refused(changed(path, None))


CONTROL = ["a\0b", "a\nb", "a\rb", "a\x1bb", "a\x7fb", "a\x85b", "a\u2028b", "a\u2029b", "a\n", "\0"]
BAD: dict[str, list[Any]] = {
    "order_id": ["", "x" * 65, "a b", "a/b", "-a", "_a", "a#b", "ä", 5, *CONTROL],
    "customer.name": ["", "x" * 201, 5, "\ufffe", "\uffff", *CONTROL],
    "customer.email": [
        "",
        "buyer",
        "buyer@",
        "@example.com",
        "buyer@example",
        "a b@example.com",
        "a@b@example.com",
        ".a@example.com",
        "a.@example.com",
        "a..b@example.com",
        "a@example.com,b@example.com",
        "A <a@example.com>",
        "bjørn@example.com",
        "a@exämple.com",
        "a@-example.com",
        "a@example-.com",
        "a@example..com",
        "x" * 65 + "@example.com",
        "a@" + "x" * 64 + ".com",
        "a@" + "x." * 130 + "com",
        "a@example.com\n",
        *CONTROL,
    ],
    "currency": ["", "eur", "EURO", "EU", "XXX", "XTS", "ABC", 978, "EUR\n"],
    "items": [[], [DATA["items"][0]] * 101, {}, "A-1"],
    "items.0.sku": ["", "x" * 65, "a b", ".a", "é", *CONTROL],
    "items.0.quantity": [0, -1, 10_001, 1.5, "1", True, 10**30],
    "items.0.unit_price": [-1, MAX_AMOUNT + 1, 1.5, "1", 0],
    "payment_method": ["", "pm_", "card_visa", "pm_" + "x" * 65, "pm_a-b", "4242424242424242", *CONTROL],
}


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, bad in BAD.items() for value in bad])
def test_what_the_next_hop_can_not_carry_is_refused_at_the_edge(path: str, value: Any) -> None:
    refused(changed(path, value))


GOOD: dict[str, list[Any]] = {
    "order_id": ["a", "x" * 64, "api_A-b_9"],
    "customer.name": ["Åsa 你好 🎉", "x" * 200, "é" * 200, "e\u0301" * 200, "O'Neil <b>&"],
    "customer.email": ["a+b.c'd@sub.example.co.uk", "x" * 64 + "@example.com", "a@" + "x" * 63 + ".com"],
    "currency": ["JPY", "KWD", "EUR"],
    "items": [[DATA["items"][0]] * 100],
    "items.0.quantity": [1, 10_000, 2.0],
    "items.0.unit_price": [1, 1250.0, 99_999_999 // 2],
    "payment_method": ["pm_card_chargeDeclined", "pm_" + "x" * 64],
}


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, good in GOOD.items() for value in good])
def test_what_is_just_within_the_limits_is_taken(path: str, value: Any) -> None:
    read(changed(path, value))


def test_items_may_be_free_but_not_the_whole_order() -> None:
    free = {"sku": "gift", "quantity": 1, "unit_price": 0}

    read(changed("items", [*DATA["items"], free]))
    assert "total" in refused(changed("items", [free]))


def test_the_total_is_limited_as_a_whole() -> None:
    assert "total" in refused(changed("items.0.unit_price", 99_999_999 // 2 + 1))


def test_a_refusal_never_quotes_the_customer() -> None:
    for path in ("customer.name", "customer.email", "payment_method"):
        said = refused(changed(path, "Secret\nPerson secret@person@example.com"))
        assert "Secret" not in said
        assert "secret@" not in said


MOVED: list[tuple[type[Event], dict[str, Any]]] = [
    (OrderPlaced, FACTS | {"payment_method": "pm_card_visa"}),
    (OrderPaid, FACTS | {"payment_intent": "pi_1"}),
    (OrderDeclined, FACTS | {"payment_intent": "pi_1", "reason": "card_declined"}),
]


@pytest.mark.parametrize(("kind", "data"), MOVED)
def test_the_events_of_a_placed_order_are_as_strict(kind: type[Event], data: dict[str, Any]) -> None:
    assert read(data, kind) == EVENTS[kind.type][0]
    assert read(data | {"newer": 1}, kind) == EVENTS[kind.type][0]
    for name in data:
        refused({key: value for key, value in data.items() if key != name}, kind)
    for total in (0, -1, MAX_AMOUNT + 1, 2.5, "2500"):
        refused(data | {"total": total}, kind)
    for name in {"order_id", "currency", "payment_method", "payment_intent", "reason"} & data.keys():
        for text in (*CONTROL, "x" * 257, "\ud83d\ude00", 5):
            refused(data | {name: text}, kind)


def test_an_order_that_was_settled_without_an_intent_still_has_its_event() -> None:
    read(FACTS | {"payment_intent": "", "reason": ""}, OrderDeclined)


def test_the_largest_order_is_far_below_what_a_record_and_a_message_carry() -> None:
    largest = {
        "order_id": "x" * 64,
        "customer": {"name": "🎉" * 200, "email": "x" * 64 + "@" + ("x" * 60 + ".") * 3 + "com"},
        "currency": "EUR",
        "items": [{"sku": "x" * 64, "quantity": 1, "unit_price": 999_999}] * 100,
        "payment_method": "pm_" + "x" * 64,
    }

    read(largest)

    assert len(json.dumps(largest).encode()) < 20_000


def test_a_total_in_thousandths_ends_in_the_zero_that_the_provider_asks_for() -> None:
    dinars = changed("currency", "KWD")

    read(dinars)  # 2500
    assert "ends in 0" in refused({**dinars, "items": [{"sku": "A-1", "quantity": 1, "unit_price": 2505}]})
