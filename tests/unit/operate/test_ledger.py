"""The reader of the provider's ledger repeats requests that failed on the provider's side, and no others."""

import json
import time
from typing import Any

import pytest
import stripe

from tools.ledger import Ledger

CHARGES = {"data": [{"id": "ch_1"}], "has_more": False}


@pytest.fixture
def statuses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The statuses of the provider's next answers."""
    planned: list[int] = []

    class Http(stripe.HTTPClient):
        name = "planned"

        def request(self, *_: Any, **__: Any) -> tuple[str, int, dict[str, str]]:
            status = planned.pop(0)
            return json.dumps(CHARGES if status == 200 else {"error": {"message": "no"}}), status, {}

    monkeypatch.setattr(stripe, "RequestsClient", lambda **_: Http())
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return planned


def test_a_page_that_failed_is_read_again(statuses: list[int]) -> None:
    statuses += [500, 502, 200]
    assert Ledger("http://127.0.0.1:1", "sk_test").charges() == CHARGES["data"]


@pytest.mark.parametrize("answers", [[500] * 5, [400]])
def test_a_provider_that_only_fails_and_a_refusal_raise(statuses: list[int], answers: list[int]) -> None:
    statuses += answers
    with pytest.raises(stripe.StripeError):
        Ledger("http://127.0.0.1:1", "sk_test").charges()
    assert statuses == []
