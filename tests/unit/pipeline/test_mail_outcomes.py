"""The mail's outcome is unknown, or known."""

import pytest

from tests.harness import samples
from tests.harness.driver import Pipeline
from tests.harness.interceptor import Fault, answer_lost, killed_after, refused
from tests.harness.observations import Metrics


def uncertain(pipeline: Pipeline, order_id: str) -> bool:
    record = pipeline.world.record(f"email.send#{order_id}")
    assert record is not None
    return bool(record["uncertain"]["BOOL"])


@pytest.mark.parametrize(("method", "state"), [("pm_card_visa", "paid"), ("pm_card_chargeDeclined", "declined")])
@pytest.mark.parametrize("fault", [answer_lost, killed_after], ids=["answer lost", "death after it"])
def test_after_an_unknown_send_there_is_one_more_mail_and_it_is_counted(
    pipeline: Pipeline, metrics: Metrics, fault: Fault, method: str, state: str
) -> None:
    order_id = pipeline.post("key-1", payment_method=method)
    pipeline.world.wire.plan("SendEmail", fault)

    pipeline.run()
    pipeline.repeat_everything()
    pipeline.run()

    pipeline.settled_once(order_id, state, mails=2)
    assert uncertain(pipeline, order_id)
    assert metrics.of("email.send")["Takeover"] == 1


def test_after_a_throttled_send_there_is_one_mail_and_nothing_to_count(pipeline: Pipeline, metrics: Metrics) -> None:
    order_id = pipeline.post("key-1")
    throttled = refused("TooManyRequestsException", 429)
    pipeline.world.wire.plan("SendEmail", throttled, throttled, throttled)

    pipeline.run()

    pipeline.settled_once(order_id, "paid")
    assert not uncertain(pipeline, order_id)
    assert "Takeover" not in metrics.of("email.send")


def test_a_refused_mail_touches_no_payment_and_finishes_on_redrive(pipeline: Pipeline) -> None:
    order_id = pipeline.post("key-1")
    pipeline.world.wire.plan(
        "SendEmail", refused("MessageRejected", message=f"Email address is not verified: {samples.ADDRESS}")
    )
    pipeline.run()
    assert pipeline.rows()[order_id]["state"] == {"S": "paid"}
    assert pipeline.mailbox.mails == []

    pipeline.redrive("emails")
    pipeline.run()

    pipeline.settled_once(order_id, "paid")
