"""From the request to the mail."""

import pytest

from tests.harness import samples
from tests.harness.driver import Pipeline
from tests.harness.observations import Log


def test_one_correlation_id_and_one_trace_go_from_the_api_to_the_mail(
    pipeline: Pipeline, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", samples.TRACE)
    order_id = pipeline.post("key-1", headers={"x-correlation-id": "from-the-shop"})
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-00000000-000000000000000000000000")  # each worker has its own

    pipeline.run()

    pipeline.settled_once(order_id, "paid")
    deliveries = [delivery for queue in pipeline.seen.values() for delivery in queue]
    assert len(deliveries) == 3
    for delivery in deliveries:
        assert '"correlationid":"from-the-shop"' in delivery.body
        assert delivery.attributes["AWSTraceHeader"] == samples.TRACE
    ours = [line for line in log.lines if line["message"] not in ("request", "provider")]
    assert {line["message"] for line in ours} == {"sent", "done"}
    assert len(ours) == 6
    assert {line["correlation_id"] for line in ours} == {"from-the-shop"}
    assert "uyer" not in log.text


def test_an_order_straight_from_the_queue_ends_the_same(pipeline: Pipeline) -> None:
    pipeline.put(samples.body_of(samples.requested(), correlation_id="of-a-partner"))

    pipeline.run()

    pipeline.settled_once("ord_1", "paid")
    assert '"correlationid":"of-a-partner"' in pipeline.seen["emails"][0].body


def test_a_decline_is_final_and_its_mail_goes_out_once(pipeline: Pipeline) -> None:
    order_id = pipeline.post("key-1", payment_method="pm_card_chargeDeclined")
    pipeline.run()
    pipeline.settled_once(order_id, "declined")

    pipeline.repeat_everything()
    pipeline.run()

    pipeline.settled_once(order_id, "declined")
    assert pipeline.payments.intents() == ["canceled"]


def test_whatever_comes_twice_is_done_once(pipeline: Pipeline) -> None:
    ids = [pipeline.post(f"key-{n}") for n in range(2)] + ["ord_1"]
    pipeline.put(samples.body_of(samples.requested()))
    pipeline.run()
    before = pipeline.rows()

    pipeline.streamed = 0  # the stream's shard comes again from its start
    pipeline.repeat_everything()
    pipeline.run()

    for order_id in ids:
        pipeline.settled_once(order_id, "paid")
    assert pipeline.rows() == before
    assert all(len(pipeline.seen[queue]) >= 6 for queue in ("orders", "payments", "emails"))
