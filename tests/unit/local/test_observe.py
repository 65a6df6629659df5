"""The ledger as an accountant reads it, over a provider that fails now and then."""

import io
import json
import time
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tools.local.observe import TRIES, Ledger
from tools.local.running import Running

RUNNING = Running("http://127.0.0.1:1", {"PaymentSandboxUrl": "http://127.0.0.1:1"}, Path())
PAGE = {"data": [{"id": "ch_1"}], "has_more": False}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Statuses that the provider answers with, one after the other."""
    planned: list[int] = []

    def urlopen(request: urllib.request.Request, **_: Any) -> io.BytesIO:
        status = planned.pop(0)
        if status != 200:
            raise urllib.error.HTTPError(request.full_url, status, "no", Message(), io.BytesIO())
        return io.BytesIO(json.dumps(PAGE).encode())

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return planned


def test_a_page_that_failed_is_asked_for_again(answers: list[int]) -> None:
    answers += [500, 502, 200]
    assert Ledger(RUNNING).charges() == PAGE["data"]


def test_a_provider_that_only_fails_is_given_up(answers: list[int]) -> None:
    answers += [500] * TRIES
    with pytest.raises(urllib.error.HTTPError):
        Ledger(RUNNING).charges()
    assert not answers


def test_a_refusal_is_not_asked_for_again(answers: list[int]) -> None:
    answers += [429, 200]
    with pytest.raises(urllib.error.HTTPError):
        Ledger(RUNNING).charges()
    assert answers == [200]
