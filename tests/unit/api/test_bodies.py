"""What is refused of a body, by field and rule, and that nothing is stored of it."""

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from msgspec import inspect

from functions.api.handler import _CORRELATION_ID
from functions.api.request import PATTERNS, Request, idempotency_key_of, posted_order
from shared.idempotency import BODY_LIMIT_BYTES as LIMIT_BYTES
from shared.orders.events import NewOrder
from shared.orders.money import MAX_AMOUNT
from tests.harness.api_fixtures import ORDER, Api
from tests.harness.growth import assert_linear


def order_with(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    order = copy.deepcopy(ORDER)
    change(order)
    return order


# What is done to a good order, and the field and rule in the answer.
INVALID: dict[str, tuple[Callable[[dict[str, Any]], object], str, str]] = {
    "no customer": (lambda o: o.pop("customer"), "customer", "required"),
    "no address": (lambda o: o["customer"].pop("email"), "customer.email", "required"),
    "no sku": (lambda o: o["items"][0].pop("sku"), "items[0].sku", "required"),
    "name with a control character": (
        lambda o: o["customer"].update(name="marker\nX"),
        "customer.name",
        PATTERNS["name"],
    ),
    "two addresses": (lambda o: o["customer"].update(email="marker@a.de,b@c.de"), "customer.email", PATTERNS["email"]),
    "long address": (lambda o: o["customer"].update(email="marker" * 50), "customer.email", "length <= 254"),
    "currency in small": (lambda o: o.update(currency="eur"), "currency", PATTERNS["currency"]),
    "no such currency": (lambda o: o.update(currency="QQQ"), "currency", "Expected an ISO 4217 code"),
    "no items": (lambda o: o.update(items=[]), "items", "length >= 1"),
    "101 items": (lambda o: o.update(items=o["items"] * 101), "items", "length <= 100"),
    "sku with a blank": (lambda o: o["items"][0].update(sku="marker 1"), "items[0].sku", PATTERNS["sku"]),
    "quantity 0": (lambda o: o["items"][0].update(quantity=0), "items[0].quantity", "Expected `int` >= 1"),
    "quantity of text": (lambda o: o["items"][0].update(quantity="2"), "items[0].quantity", "got `str`"),
    "half a piece": (lambda o: o["items"][0].update(quantity=0.5), "items[0].quantity", "got `float`"),
    "negative price": (lambda o: o["items"][0].update(unit_price=-1), "items[0].unit_price", ">= 0"),
    "no price": (lambda o: o["items"][0].update(unit_price=None), "items[0].unit_price", "got `null`"),
    "too dear": (
        lambda o: o["items"][0].update(quantity=10_000, unit_price=MAX_AMOUNT),
        "items",
        "Expected a total from 1 to 99999999",
    ),
    "less than the provider charges": (
        lambda o: o["items"][0].update(quantity=1, unit_price=49),
        "items",
        "Expected a total of at least 50",
    ),
    "for nothing": (lambda o: o["items"][0].update(unit_price=0), "items", "Expected a total from 1"),
    "a card number": (
        lambda o: o.update(payment_method="4242424242424242"),
        "payment_method",
        PATTERNS["payment_method"],
    ),
    "order id": (lambda o: o.update(order_id="api_marker"), "order_id", "must not be sent: the API makes it"),
    "total": (lambda o: o.update(total=987654), "total", "must not be sent: the API computes it"),
    "misspelt field": (lambda o: o.update(curency="QQQ"), "curency", "unknown field"),
    "misspelt in the customer": (lambda o: o["customer"].update(mail="marker"), "customer.mail", "unknown field"),
    "misspelt in an item": (lambda o: o["items"][0].update(discount=9876), "items[0].discount", "unknown field"),
    "unprintable field": (lambda o: o.update({"a\n\u00e4\u2028": 1}), r"a\xe4\u2028", "unknown"),
}
MARKS = ("marker", "QQQ", "eur", "4242", "987654", "9876", str(10_000 * MAX_AMOUNT))


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_body_is_refused_by_field_and_rule_without_its_values(api: Api, case: str) -> None:
    change, field, rule = INVALID[case]
    body = order_with(change)

    answer = api.post(body)

    assert (answer.status, answer.problem) == (400, "invalid-order")
    assert rule in answer.errors[field]
    assert not [mark for mark in MARKS if mark in answer.text or mark in api.log.getvalue()]
    assert not api.stored


@pytest.mark.parametrize(
    ("currency", "smallest", "largest"),
    [
        ("EUR", 50, 99_999_999),
        ("HUF", 17_500, 99_999_999),
        ("JPY", 50, 99_999_999),
        ("COP", 1, 99_999_999),
        ("IDR", 1, 999_999_999_999),
    ],
)
def test_a_total_is_accepted_within_the_providers_limits_of_its_currency(
    api: Api, currency: str, smallest: int, largest: int
) -> None:
    def post(total: int) -> int:
        items = [{"sku": "A-1", "quantity": 1, "unit_price": total}]
        return api.post(ORDER | {"currency": currency, "items": items}, key=f"k-{total}").status

    totals = (smallest - 1, smallest, largest, largest + 1)
    assert [post(total) for total in totals] == [400, 202, 202, 400]


def test_after_an_invalid_body_the_key_is_free_for_the_corrected_one(api: Api) -> None:
    api.post(order_with(lambda o: o.update(currency="QQQ")))

    answer = api.post()

    assert answer.status == 202
    assert "idempotent-replayed" not in answer.headers


def test_a_name_that_is_unknown_is_not_repeated_at_full_length(api: Api) -> None:
    assert api.post(ORDER | {"x" * 30_000: 1}).errors == {"x" * 64: "unknown field"}


def test_a_field_that_is_given_twice_is_refused(api: Api) -> None:
    twice = json.dumps(ORDER).replace('"quantity": 2', '"quantity": 2, "quantity": 200')

    answer = api.post(twice)

    assert (answer.status, answer.errors) == (400, {"quantity": "sent once"})
    assert not api.stored


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "currency=EUR",
        "NaN",
        "\ufeff" + json.dumps(ORDER),
        json.dumps(ORDER) + "x",
        json.dumps(ORDER).replace("A. Buyer", "\\ud800"),
        "1" * 5000,
        json.dumps(ORDER).replace('"A. Buyer"', "[" * 30_000 + "]" * 30_000),
        json.dumps(ORDER).replace('"currency"', '"deep": ' + "[" * 30_000 + "]" * 30_000 + ', "currency"'),
        json.dumps(ORDER).encode("utf-16"),
        json.dumps(ORDER).encode().replace(b"A. Buyer", b"\xff"),
        json.dumps(ORDER).replace("A. Buyer", "\ud800").replace("\\ud800", "\ud800"),
    ],
    ids=[
        "none",
        "cut",
        "form",
        "NaN",
        "BOM",
        "tail",
        "surrogate",
        "digits",
        "deep",
        "deep-unknown",
        "utf-16",
        "not-utf-8",
        "lone",
    ],
)
def test_a_body_that_is_not_json_in_utf_8_is_refused(api: Api, body: str | bytes) -> None:
    answer = api.post(body)

    assert (answer.status, answer.problem) == (400, "invalid-order")
    assert not api.stored


@pytest.mark.parametrize("body", ["[]", "null", "1", '"text"'])
def test_a_body_that_is_not_an_object_is_refused(api: Api, body: str) -> None:
    answer = api.post(body)

    assert (answer.status, answer.problem) == (400, "invalid-order")
    assert "Expected `object`" in answer.errors["body"]


@pytest.mark.parametrize("body", [json.dumps(ORDER).encode("utf-16"), b"\xff", "\ud800"])
def test_a_body_in_another_encoding_is_told_so(api: Api, body: str | bytes) -> None:
    assert api.post(body).json["detail"].startswith("The body is not UTF-8.")


def test_a_body_in_base64_is_read_as_well(api: Api) -> None:
    placed = api.post(json.dumps(ORDER).encode())

    assert placed.status == 202
    assert api.post().text == placed.text


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_another_content_type_is_refused(api: Api, kind: str) -> None:
    answer = api.post(headers={"content-type": kind})

    assert (answer.status, answer.problem) == (415, "not-json")
    assert not api.stored


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON ;x=1"])
def test_json_is_taken_with_parameters_and_in_any_case(api: Api, kind: str) -> None:
    assert api.post(headers={"content-type": kind}).status == 202


def test_a_body_over_the_limit_is_refused_and_one_at_the_limit_is_read(api: Api) -> None:
    body = json.dumps(ORDER)

    too_large = api.post(body.ljust(LIMIT_BYTES + 1))
    assert (too_large.status, too_large.problem) == (413, "too-large")
    assert not api.stored
    assert api.post(body.ljust(LIMIT_BYTES)).status == 202


@pytest.mark.parametrize("body", ["x" * 6_000_000, b"x" * 6_000_000], ids=["text", "Base64"])
def test_a_body_far_over_the_limit_is_refused_before_it_is_encoded_or_decoded(
    api: Api, body: str | bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("functions.api.request._decode", lambda _: pytest.fail("decoded"))

    assert api.post(body).status == 413


def test_a_body_in_base64_may_have_as_many_bytes_as_another(api: Api) -> None:
    assert api.post(json.dumps(ORDER).ljust(LIMIT_BYTES).encode()).status == 202
    assert api.post(json.dumps(ORDER).ljust(LIMIT_BYTES + 1).encode()).status == 413


@pytest.mark.parametrize(
    "note",
    [
        lambda size: json.dumps("a" + "\u0300\u0316" * (size // 4), ensure_ascii=False),
        lambda size: f"[{','.join(['1e308'] * (size // 6))}]",
        lambda size: "9" * size,
        lambda size: "1e" + "9" * size,
        lambda size: "[" * size,
        lambda size: "1" + ',"note":1' * (size // 9),
        lambda size: "1," + ",".join(f'"f{n}":1' for n in range(size // 11)),
    ],
    ids=["marks", "large exponents", "digits", "a long exponent", "nested", "repeated", "fields"],
)
def test_the_work_on_a_body_grows_no_faster_than_its_size(note: Callable[[int], str]) -> None:
    def work(size: int) -> Callable[[], object]:
        body = json.dumps(ORDER | {"note": "HERE"}).replace('"HERE"', note(size))
        headers = {"content-type": "application/json"}
        request = Request("id", "POST", "POST /orders", {}, "/orders", headers, body, False, {})
        return lambda: posted_order(request)

    assert_linear(work)


@pytest.mark.parametrize("unit", ["a", '\\"', ",", " ", '"'])
def test_the_work_on_headers_grows_no_faster_than_their_size(unit: str) -> None:
    assert_linear(lambda size: partial(idempotency_key_of, '"' + unit * (size // len(unit))))
    assert_linear(lambda size: partial(_CORRELATION_ID.fullmatch, unit * (size // len(unit))))


def test_the_limit_is_counted_in_bytes_not_in_characters(api: Api) -> None:
    wide = json.dumps(ORDER | {"note": "\u20ac" * (LIMIT_BYTES // 2)}, ensure_ascii=False)
    assert len(wide) < LIMIT_BYTES

    assert api.post(wide).status == 413


def test_the_largest_order_within_its_own_limits_is_taken_and_fits_what_is_written(api: Api) -> None:
    largest = {
        "customer": {"name": "\U0001f600" * 200, "email": f"{'a' * 64}@{'b' * 61}.{'c' * 61}.{'d' * 61}.de"},
        "currency": "EUR",
        "items": [{"sku": "x" * 64, "quantity": 1, "unit_price": 999_999}] * 100,
        "payment_method": "pm_" + "x" * 64,
    }

    assert api.post(largest).status == 202

    (written,) = api.world.wire.bodies("TransactWriteItems")
    assert len(json.dumps(largest)) < 16 * 1024
    assert len(written) < 100 * 1024


def test_each_rule_that_is_a_pattern_has_words() -> None:
    def patterned(shape: inspect.Type) -> Iterator[str]:
        match shape:
            case inspect.StructType(fields=fields):
                for field in fields:
                    if isinstance(field.type, inspect.StrType) and field.type.pattern:
                        yield field.encode_name
                    yield from patterned(field.type)
            case inspect.VarTupleType(item_type=item):
                yield from patterned(item)

    assert set(patterned(inspect.type_info(NewOrder))) == set(PATTERNS)
