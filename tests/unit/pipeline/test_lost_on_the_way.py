"""The stream, the relay and the sweep: what is lost or half-sent between two functions."""

import pytest

from tests.harness import samples
from tests.harness.driver import SWEEP_AGE_S, Pipeline
from tests.harness.interceptor import answer_lost, killed_after, killed_before
from tests.harness.lost_messages import some_refused
from tests.harness.observations import Metrics

STAGES = ("requested", "placed", "settled")


def orders_stopped_at_each_stage(pipeline: Pipeline) -> list[str]:
    """Orders of which the stream has lost the event of one step each."""
    ids = []
    for stage in STAGES:
        order_id = pipeline.post(f"key-{stage}")
        ids.append(order_id)
        for _ in range(STAGES.index(stage)):
            pipeline.relay()
            for queue in ("orders", "payments"):
                pipeline.deliver(queue)
        pipeline.lose_stream()
    assert [row["state"]["S"] for row in map(pipeline.rows().get, ids) if row] == ["requested", "placed", "paid"]
    return ids


def test_the_stream_lost_a_day_and_the_sweep_finishes_every_open_order_once(pipeline: Pipeline) -> None:
    ids = orders_stopped_at_each_stage(pipeline)
    pipeline.run()
    assert pipeline.mailbox.mails == []

    pipeline.world.clock.advance(SWEEP_AGE_S)
    pipeline.sweep()
    pipeline.run()

    for order_id in ids:
        pipeline.settled_once(order_id, "paid")
    sent = pipeline.world.wire.count("SendMessageBatch")
    pipeline.world.clock.advance(30 * 86400)
    pipeline.sweep()
    assert pipeline.world.wire.count("SendMessageBatch") == sent


def test_with_the_stream_dead_for_good_the_sweep_alone_finishes_an_order(pipeline: Pipeline) -> None:
    order_id = pipeline.post("key-1", payment_method="pm_card_chargeDeclined")

    for _ in STAGES:
        pipeline.lose_stream()
        pipeline.world.clock.advance(SWEEP_AGE_S)
        pipeline.sweep()
        for queue in ("orders", "payments", "emails"):
            pipeline.deliver(queue)

    pipeline.settled_once(order_id, "declined")


def test_a_sweep_beside_a_living_stream_does_everything_once(pipeline: Pipeline) -> None:
    order_id = pipeline.post("key-1")
    for _ in STAGES:
        pipeline.world.clock.advance(SWEEP_AGE_S)
        pipeline.sweep()
        pipeline.relay()
        for queue in ("orders", "payments", "emails"):
            pipeline.deliver(queue)
    pipeline.run()

    pipeline.settled_once(order_id, "paid")


def test_an_order_whose_worker_died_before_its_record_was_streamed_is_paid_once(pipeline: Pipeline) -> None:
    pipeline.put(samples.body_of(samples.requested()))
    pipeline.world.wire.plan("TransactWriteItems", killed_after)
    pipeline.deliver("orders")
    assert pipeline.rows()["ord_1"]["state"] == {"S": "placed"}
    pipeline.world.wire.plan("SendMessageBatch", killed_before, killed_after)  # and two relays after it

    pipeline.run()

    pipeline.settled_once("ord_1", "paid")
    assert pipeline.world.wire.count("SendMessageBatch") == 4  # two that died, one to payments, one to emails
    assert len(pipeline.seen["payments"]) == 2


def test_what_a_queue_refused_is_sent_again_and_what_came_twice_is_taken_once(
    pipeline: Pipeline, metrics: Metrics
) -> None:
    ids = [pipeline.post(f"key-{n}") for n in range(3)]
    refused = some_refused(lambda entry: ids[1] in entry["MessageBody"])
    # Refused in part twice, then taken with the answer lost; at the next hop all is taken and the answer lost.
    pipeline.world.wire.plan("SendMessageBatch", refused, refused, answer_lost)
    pipeline.relay()
    pipeline.world.wire.plan("SendMessageBatch", answer_lost)

    pipeline.run()

    for order_id in ids:
        pipeline.settled_once(order_id, "paid")
    assert len(pipeline.seen["orders"]) == 4
    assert len(pipeline.seen["payments"]) == 6
    assert metrics.of("relay")["Resent"] == 3 + 3


@pytest.mark.parametrize("refusals", [3])
def test_a_relay_that_gives_up_is_called_again_until_all_is_sent(pipeline: Pipeline, refusals: int) -> None:
    order_id = pipeline.post("key-1")
    pipeline.world.wire.always("SendMessageBatch", some_refused(lambda _: True))
    for _ in range(refusals):
        pipeline.relay()
    assert pipeline.streamed == 0

    pipeline.world.wire.always("SendMessageBatch", None)
    pipeline.run()

    pipeline.settled_once(order_id, "paid")


def test_a_record_that_nobody_can_read_blocks_no_order(pipeline: Pipeline) -> None:
    pipeline.world.dynamodb.put_item(
        TableName="idempotency",
        Item={"id": {"S": "order.place#bad"}, "status": {"S": "COMPLETED"}, "outbox": {"S": "[{"}},
    )
    order_id = pipeline.post("key-1")

    pipeline.run()

    assert pipeline.dead_letters() == {"relay-dlq": ["unreadable_outbox"]}
    pipeline.settled_once(order_id, "paid")
