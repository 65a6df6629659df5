"""From the request to the mail."""

import json

import pytest

from tests.unit.pipeline import samples
from tests.unit.pipeline.driver import Pipeline
from tests.unit.pipeline.witnesses import Log


def placed(pipeline: Pipeline, method: str = "pm_card_visa") -> str:
    """An order by the API; its id."""
    answer = pipeline.api.post(json.loads(samples.body_of(samples.requested(payment_method=method)))["data"] | {})
    assert answer.status == 202, answer.text
    return str(answer.json["order_id"])


def test_one(pipeline: Pipeline) -> None:
    pipeline.put(samples.body_of(samples.requested()))
    pipeline.run()
    print(pipeline.rows(), pipeline.mailbox.mails, pipeline.shop.charges(), pipeline.dead_letters())
    assert 0
