"""A broken deploy parks nothing; and a redrive after every record has expired does nothing twice."""

import pytest

from tests.harness import samples
from tests.harness.driver import OUTAGE_S, SWEEP_AGE_S, Pipeline
from tests.harness.interceptor import refused

DENIED = "AccessDeniedException"
GONE = "ResourceNotFoundException"

# From which function on, what is missing, and what the service says.
MISSING = [
    ("orders", "TransactWriteItems", DENIED),
    ("orders", "TransactWriteItems", GONE),
    ("payments", "UpdateItem", DENIED),
    ("payments", "UpdateItem", GONE),
    ("payments", "GetItem", DENIED),
    ("payments", "GetSecretValue", DENIED),
    ("payments", "TransactWriteItems", DENIED),
    ("emails", "UpdateItem", GONE),
    ("emails", "GetItem", DENIED),
    ("emails", "PutObject", "NoSuchBucket"),
    ("emails", "SendEmail", DENIED),
    ("emails", "TransactWriteItems", DENIED),
]


@pytest.mark.parametrize(("queue", "operation", "code"), MISSING)
def test_without_a_permission_or_a_table_all_is_retried_for_two_hours_and_finishes_when_it_is_mended(
    pipeline: Pipeline, queue: str, operation: str, code: str
) -> None:
    order_id = pipeline.post("key-1")
    pipeline.run_up_to(queue)
    pipeline.world.wire.always(operation, refused(code))

    pipeline.run(until_s=pipeline.world.clock.now_ms() / 1000 + OUTAGE_S)
    pipeline.world.wire.always(operation, None)
    assert not [row for row in pipeline.rows().values() if "mailed_at" in row]
    assert pipeline.dead_letters() == {}

    pipeline.run()

    pipeline.settled_once(order_id, "paid")


def test_when_no_queue_could_be_sent_to_for_two_hours_the_sweep_finishes(pipeline: Pipeline) -> None:
    order_id = pipeline.post("key-1")
    pipeline.world.wire.always("SendMessageBatch", refused(DENIED))
    pipeline.run(until_s=pipeline.world.clock.now_ms() / 1000 + OUTAGE_S)
    pipeline.world.wire.always("SendMessageBatch", None)
    pipeline.run()
    assert pipeline.mailbox.mails == []  # the stream's mapping had given up

    pipeline.world.clock.advance(SWEEP_AGE_S)
    pipeline.sweep()
    pipeline.run()

    pipeline.settled_once(order_id, "paid")


def test_a_redrive_after_the_records_are_gone_places_charges_and_mails_nothing_again(pipeline: Pipeline) -> None:
    paid = pipeline.post("key-1")
    declined = pipeline.post("key-2", payment_method="pm_card_chargeDeclined")
    pipeline.put(samples.body_of(samples.requested()))
    pipeline.run()
    before = pipeline.rows()

    pipeline.payments.forget()  # the provider's keys too
    for queue, deliveries in pipeline.seen.items():
        for delivery in deliveries:
            pipeline.park(delivery, queue)
    for queue in pipeline.queues:
        pipeline.redrive(queue)
    pipeline.run()

    pipeline.settled_once(paid, "paid")
    pipeline.settled_once(declined, "declined")
    pipeline.settled_once("ord_1", "paid")
    assert pipeline.rows() == before
    assert len(pipeline.mailbox.mails) == 3
