"""The Idempotency-Key header, and the order id made of it."""

import re

import pytest

from functions.api.request import Problem, idempotency_key_of, order_id_of
from shared.orders.row import API_ID_PREFIX
from tests.harness.api_fixtures import Api


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        ('  "abc"\t', "abc"),
        (r'"a\"b\\c"', r"a\"b\c".replace('\\"', '"')),
        ('"a,b"', "a,b"),
        ("order/1;v=2", "order/1;v=2"),
        ("x" * 255, "x" * 255),
        (f'"{"x" * 255}"', "x" * 255),
    ],
)
def test_a_key_is_taken_quoted_or_bare(header: str, key: str) -> None:
    assert idempotency_key_of(header) == key


@pytest.mark.parametrize(
    "header",
    [
        "",
        '""',
        " ",
        "x" * 256,
        f'"{"x" * 256}"',
        "a b",
        '"a b"',
        '"a',
        'a"',
        'a"b',
        r'"a\b"',
        "a\u00e4",
        "a\x00",
        "a,b",
        '"a", "b"',
        '"a";p=1',
        "a\n",
    ],
)
def test_a_malformed_key_is_refused_by_telling_what_a_key_looks_like(api: Api, header: str) -> None:
    answer = api.post(key=header)

    assert (answer.status, answer.problem) == (400, "key-malformed")
    assert "1 to 255 visible ASCII characters" in answer.json["detail"]
    assert not api.stored


def test_a_request_without_a_key_is_refused_with_a_link_to_what_it_is(api: Api) -> None:
    answer = api.post(key=None)

    assert (answer.status, answer.problem) == (400, "key-missing")
    assert "1 to 255 visible ASCII characters" in answer.json["detail"]
    assert answer.headers["link"].startswith("<https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency")
    assert not api.stored


def test_the_same_key_quoted_and_bare_is_one_order(api: Api) -> None:
    first, second = api.post(key="k-1"), api.post(key='"k-1"')

    assert first.text == second.text
    assert second.headers["idempotent-replayed"] == "true"
    assert len(api.orders) == 1


def test_order_ids_have_the_reserved_prefix_and_26_characters_of_base32() -> None:
    assert re.fullmatch(API_ID_PREFIX + "[a-z2-7]{26}", order_id_of("a", "POST", "/orders", "k"))


@pytest.mark.parametrize("other", [("ab", "c"), ("", "abc"), ("a", "b", "c"), ("abc",), ("a1:b", "c"), ("a", "bc1:")])
def test_no_two_scopes_run_together_into_one_id(other: tuple[str, ...]) -> None:
    assert order_id_of(*other) != order_id_of("a", "bc")


def test_a_refusal_does_not_repeat_the_key() -> None:
    with pytest.raises(Problem) as caught:
        idempotency_key_of("some secret thing")

    assert "secret" not in str(caught.value.response.body) + str(caught.value)
