"""The work on an order's message grows no faster than the message."""

import json
import unicodedata
from functools import partial
from typing import Any

import pytest

from shared.idempotency import BODY_LIMIT_BYTES, Permanent, events, fingerprint
from shared.orders import OrderRequested
from tests.harness import samples
from tests.harness.decoding import decode
from tests.harness.growth import assert_linear

KINDS = {OrderRequested.type: OrderRequested}
MARKS = "\u0300\u0316"


def order(**changes: Any) -> str:
    """A valid order on the queue, with changes to its data."""
    body = json.loads(samples.body_of(samples.requested("ord_1")))
    body["data"] |= changes
    return json.dumps(body, ensure_ascii=False)


def fill(size: int, unit: str) -> str:
    return unit * (size // len(unit.encode()))


def raw(size: int, name: str, unit: str) -> str:
    """An order with JSON text that `json` would not write."""
    return order(**{name: "HERE"}).replace('"HERE"', unit.replace("@", "9" * size))


HOSTILE = {
    "marks in an unknown field": lambda size: order(note="a" + fill(size, MARKS)),
    "escaped marks in an unknown field": lambda size: json.dumps(json.loads(order(note="a" + fill(size // 3, MARKS)))),
    "marks in a name of a field": lambda size: order(**{"a" + fill(size, MARKS): 1}),
    "marks in a name": lambda size: order(customer={"name": "a" + fill(size, MARKS), "email": "a@example.com"}),
    "marks in a currency": lambda size: order(currency="E" + fill(size, MARKS)),
    "marks in a list": lambda size: order(items=[{"sku": fill(size, MARKS), "quantity": 1, "unit_price": 1}]),
    "marks in an envelope": lambda size: json.dumps(
        json.loads(order()) | {"note": fill(size, MARKS)}, ensure_ascii=False
    ),
    "marks in the type": lambda size: json.dumps(json.loads(order()) | {"type": fill(size, MARKS)}, ensure_ascii=False),
    "digits": lambda size: raw(size, "currency", "@"),
    "digits in an unknown field": lambda size: raw(size, "note", "@"),
    "a long fraction": lambda size: raw(size, "note", "1.@"),
    "a long exponent": lambda size: raw(size, "note", "1e@"),
    "large exponents": lambda size: raw(0, "note", f"[{','.join(['1e308'] * (size // 6))}]"),
    "whole floats for items": lambda size: raw(0, "items", f"[{','.join(['1e308'] * (size // 6))}]"),
    "nested lists": lambda size: raw(0, "note", "[" * (size // 2) + "]" * (size // 2)),
    "nested objects": lambda size: raw(0, "note", '{"":' * (size // 5) + "1" + "}" * (size // 5)),
    "many fields": lambda size: order(**{f"f{n}": n for n in range(size // 14)}),
    "one field repeated": lambda size: raw(0, "note", "1" + ',"note":1' * (size // 9)),
    "many items": lambda size: order(items=[{"sku": "\u00e9", "quantity": 1.0, "unit_price": 1}] * (size // 50)),
    "a long address": lambda size: order(customer={"name": "a", "email": fill(size, "a.") + "@example.com"}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_the_work_on_a_message_grows_no_faster_than_its_size(case: str) -> None:
    assert_linear(lambda size: partial(decode, HOSTILE[case](size), KINDS))


@pytest.mark.parametrize("case", HOSTILE)
def test_only_short_text_is_normalised(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []

    class Counting:
        @staticmethod
        def normalize(form: Any, text: str) -> str:
            lengths.append(len(text))
            return unicodedata.normalize(form, text)

    monkeypatch.setattr(events, "unicodedata", Counting)
    try:
        _, event = decode(HOSTILE[case](48_000), KINDS)
    except Permanent:
        pass
    else:
        fingerprint(event)

    assert max(lengths, default=0) <= 4 * 254  # of the longest field: an address


def test_a_text_that_normalisation_makes_too_long_is_refused() -> None:
    """U+0958 is one character that NFC writes as two."""
    body = order(customer={"name": "\u0958" * 101, "email": "a@example.com"})

    with pytest.raises(Permanent, match=r"length <= 200 - at `\$\.customer\.name`"):
        decode(body, KINDS)


def test_the_largest_valid_order_is_read() -> None:
    body = order()

    decode(body + " " * (BODY_LIMIT_BYTES - len(body.encode())), KINDS)
