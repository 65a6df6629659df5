"""The audit: nothing on a healthy stage, and each thing that can be wrong, planted and found."""

import json
import os
from dataclasses import replace
from typing import Any

import pytest
import stripe

from shared.orders.events import OrderPlaced
from tests.harness import samples
from tests.harness.driver import SWEEP_AGE_S, Pipeline
from tests.harness.interceptor import meanwhile, refused
from tests.harness.lost_messages import answer
from tests.harness.moto_world import World
from tests.harness.payment_fixtures import API_KEY
from tests.unit.operate.conftest import audited
from tests.unit.operate.test_dlq import parked
from tools import tables
from tools.ledger import Ledger
from tools.operate.audit import Audit
from tools.operate.deployment import Deployment

DAY_S = 86_400


def kinds(audit: Audit) -> list[tuple[str, str]]:
    return [(finding.kind, finding.order_id) for finding in audit.findings]


def order_done(pipeline: Pipeline, order_id: str = "ord_1", method: str = "pm_card_visa") -> None:
    """An order that has gone all the way, and is old enough to be judged."""
    pipeline.put(samples.body_of(samples.requested(order_id, payment_method=method)))
    pipeline.run()
    pipeline.world.clock.advance(SWEEP_AGE_S)


def order_placed(pipeline: Pipeline, order_id: str = "ord_1") -> None:
    """An order whose event to the next step was lost on the way."""
    pipeline.put(samples.body_of(samples.requested(order_id)))
    pipeline.deliver("orders")
    pipeline.lose_stream()
    pipeline.world.clock.advance(SWEEP_AGE_S)


def change(world: World, table: str, key: str, expression: str, **values: Any) -> None:
    """A hand in a table."""
    name = {"orders": "order_id", "idempotency": "id"}[table]
    names = {"#status": "status", "#state": "state", "#data": "data", "#total": "total"}
    world.dynamodb.update_item(
        TableName=table,
        Key={name: {"S": key}},
        UpdateExpression=expression,
        **({"ExpressionAttributeNames": used} if (used := {n: f for n, f in names.items() if n in expression}) else {}),
        **({"ExpressionAttributeValues": {f":{n}": value for n, value in values.items()}} if values else {}),
    )


def charge(order_id: str, amount: int = 2599) -> tuple[str, str]:
    """Somebody charges the customer at the provider; intent and charge."""
    api = stripe.StripeClient(API_KEY, base_addresses={"api": os.environ["PROVIDER_URL"]}, max_network_retries=0)
    intent = api.v1.payment_intents.create(
        {
            "amount": amount,
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "metadata": {"order_id": order_id},
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        }
    )
    return intent.id, str(api.v1.payment_intents.confirm(intent.id).latest_charge)


def test_a_healthy_stage_has_no_findings(pipeline: Pipeline, deployment: Deployment) -> None:
    api_order = pipeline.post("k-1")
    order_done(pipeline, "ord_1")
    order_done(pipeline, "ord_2", "pm_card_chargeDeclined")

    audit = audited(deployment)

    assert audit.findings == []
    assert (audit.orders, audit.records, audit.charges) == (3, 10, 3)
    assert pipeline.rows()[api_order]["state"] == {"S": "paid"}


def test_orders_on_their_way_are_not_judged_before_their_age(pipeline: Pipeline, deployment: Deployment) -> None:
    order_placed(pipeline)
    pipeline.world.clock.advance(-1)
    assert audited(deployment).findings == []
    pipeline.world.clock.advance(1)
    assert kinds(audited(deployment)) == [("event_missing", "ord_1")]


def test_the_age_can_be_given(pipeline: Pipeline, deployment: Deployment) -> None:
    pipeline.put(samples.body_of(samples.requested()))
    pipeline.deliver("orders")
    assert kinds(audited(deployment, age_s=0)) == [("event_missing", "ord_1")]


def test_an_event_that_got_lost_is_found_and_repaired_with_the_very_same_event(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_placed(pipeline)
    record = pipeline.world.record("order.place#ord_1")
    assert record is not None
    (entry,) = json.loads(record["outbox"]["S"])

    audit = audited(deployment, repair=True)

    assert audit.resent == {"ord_1": "sent ord_1/order.placed"}
    (message,) = pipeline.world.messages("payments")
    again = json.loads(message["Body"])
    assert {**again, "time": None} == {**entry["event"], "time": None}
    pipeline.put(message["Body"], "payments")
    pipeline.run()
    pipeline.settled_once("ord_1", "paid")
    pipeline.world.clock.advance(SWEEP_AGE_S)
    assert audited(deployment).findings == []


def test_a_repair_of_what_was_not_lost_at_all_does_nothing_twice(pipeline: Pipeline, deployment: Deployment) -> None:
    pipeline.put(samples.body_of(samples.requested()))
    pipeline.deliver("orders")
    for _ in range(3):
        audited(deployment, repair=True, age_s=0)
    pipeline.run()
    pipeline.settled_once("ord_1", "paid")


def test_a_repair_that_is_refused_is_told(pipeline: Pipeline, deployment: Deployment) -> None:
    order_placed(pipeline)
    pipeline.world.wire.plan("SendMessageBatch", refused("AccessDenied", 403))
    assert audited(deployment, repair=True).resent == {"ord_1": "refused: AccessDenied"}


def test_an_order_that_moved_before_its_repair_gets_the_event_that_it_waits_for_now(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_placed(pipeline)
    settle = lambda: samples.settle(pipeline.world, samples.requested(), "paid")  # noqa: E731
    pipeline.world.wire.plan("GetItem", meanwhile(settle))
    assert audited(deployment, repair=True).resent == {"ord_1": "sent ord_1/order.paid"}


def test_an_order_whose_step_was_tried_and_given_back_is_late(pipeline: Pipeline, deployment: Deployment) -> None:
    order_placed(pipeline)
    pipeline.world.wire.always("GetItem", refused("AccessDeniedException"))
    pipeline.put(samples.body_of(placed(pipeline)), "payments")
    pipeline.deliver("payments")
    pipeline.world.wire.always("GetItem", None)
    pipeline.world.clock.advance(SWEEP_AGE_S)

    (finding,) = audited(deployment).findings

    assert (finding.kind, finding.resend) == ("late", True)
    assert "payment.charge had 1 attempts" in finding.detail


def placed(pipeline: Pipeline) -> OrderPlaced:
    """The event of the sample order."""
    order = samples.requested()
    assert "ord_1" in pipeline.rows()
    return OrderPlaced(
        order_id=order.order_id, currency=order.currency, total=order.total, payment_method=order.payment_method
    )


@pytest.mark.parametrize(("queue", "resent"), [("payments", {}), ("orders", {"ord_1": "sent ord_1/order.placed"})])
def test_a_noted_effect_whose_message_is_parked_waits_for_a_person(
    pipeline: Pipeline, deployment: Deployment, queue: str, resent: dict[str, str]
) -> None:
    order_placed(pipeline)
    pipeline.world.dynamodb.put_item(
        TableName="idempotency",
        Item={
            "id": {"S": "payment.charge#ord_1"},
            "status": {"S": "INPROGRESS"},
            "validation": {"S": "v1:x"},
            "in_progress_expiration": {"N": "1"},
            "effect": {"S": "v1:x {}"},
            "expiration": {"N": "9999999999"},
        },
    )
    parked(pipeline.world, queue, "ord_1", "effect_without_state")

    audit = audited(deployment, repair=True)

    assert ("effect_without_state", "ord_1") in kinds(audit)
    assert audit.resent == resent


def test_an_order_in_front_of_a_damaged_record_is_not_sent_again(pipeline: Pipeline, deployment: Deployment) -> None:
    order_placed(pipeline)
    pipeline.world.dynamodb.put_item(
        TableName="idempotency",
        Item={"id": {"S": "payment.charge#ord_1"}, "status": {"S": "ODD"}, "expiration": {"N": "9999999999"}},
    )
    audit = audited(deployment, repair=True)
    assert (kinds(audit), audit.resent) == ([("damaged_record", "ord_1")], {})


def test_whatever_is_parked_is_found_also_where_no_order_is_known(world: World, deployment: Deployment) -> None:
    parked(world, "orders", "x", "unparsable", body="not json")
    parked(world, "emails", "ord_9", "effect_without_state")

    assert kinds(audited(deployment)) == [("effect_without_state", "ord_9"), ("parked", "")]


def test_a_second_charge_is_found_and_is_gone_once_it_is_refunded(
    pipeline: Pipeline, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_done(pipeline)
    _, second = charge("ord_1")

    assert kinds(audited(deployment)) == [("paid_twice", "ord_1")]

    listed = Ledger.charges_by_order
    monkeypatch.setattr(
        Ledger,
        "charges_by_order",
        lambda self: ((order, replace(of, refunded=of.id == second)) for order, of in listed(self)),
    )
    assert audited(deployment).findings == []


def test_a_charge_that_no_row_knows_is_found(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline, "ord_1", "pm_card_chargeDeclined")
    intent, charged = charge("ord_1")
    charge("ord_unheard_of")
    assert audited(deployment).findings == []  # a charge a moment old may still be on its way to its row
    pipeline.world.clock.advance(SWEEP_AGE_S)

    audit = audited(deployment)

    assert kinds(audit) == [("charged_not_recorded", "ord_1"), ("charged_not_recorded", "ord_unheard_of")]
    assert audit.findings[0].detail == f"{charged} of {intent}, the order is declined"


def test_a_paid_order_under_another_intent_than_was_charged_is_found(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_done(pipeline)
    change(pipeline.world, "orders", "ord_1", "SET intent_id = :other", other={"S": "pi_other"})
    assert kinds(audited(deployment)) == [("charged_not_recorded", "ord_1")]


def test_a_charge_of_another_amount_is_found(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)
    change(pipeline.world, "orders", "ord_1", "SET #total = :less", less={"N": "1"})
    (finding,) = audited(deployment).findings
    assert (finding.kind, finding.detail.endswith("is 2599 EUR, ordered 1 EUR")) == ("wrong_amount", True)


def test_a_paid_order_without_a_charge_is_found(world: World, deployment: Deployment) -> None:
    samples.pay(world, samples.requested())
    assert "paid_without_charge" not in dict(kinds(audited(deployment)))
    world.clock.advance(SWEEP_AGE_S)
    assert ("paid_without_charge", "ord_1") in kinds(audited(deployment))


def test_a_mail_that_may_have_gone_out_twice_is_a_note_and_nothing_wrong(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_done(pipeline)
    change(pipeline.world, "idempotency", "email.send#ord_1", "SET uncertain = :true", true={"BOOL": True})

    audit = audited(deployment)

    assert (kinds(audit), audit.wrong) == ([("possibly_mailed_twice", "ord_1")], [])


def test_records_gone_before_their_time_are_a_note_and_those_whose_time_is_up_are_nothing(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_done(pipeline)
    pipeline.world.empty("idempotency", "id")

    audit = audited(deployment)
    assert (kinds(audit), audit.wrong) == ([("record_missing", "ord_1")], [])
    assert audit.findings[0].detail == "order.place, payment.charge, email.send"

    pipeline.world.clock.advance(30 * DAY_S)
    assert audited(deployment).findings == []


BY_HAND: list[tuple[str, str, str, dict[str, Any]]] = [
    ("record_without_state", "orders", "SET #state = :placed REMOVE paid_at, mailed_at", {"placed": {"S": "placed"}}),
    ("damaged_row", "orders", "REMOVE currency", {}),
    ("damaged_row", "orders", "REMOVE paid_at", {}),
    ("damaged_row", "orders", "SET paid_at = :odd", {"odd": {"S": "yesterday"}}),
    ("damaged_row", "orders", "SET #state = :odd", {"odd": {"S": "lost"}}),
    ("damaged_row", "orders", "SET #total = :odd", {"odd": {"N": "1.5"}}),
    ("damaged_record", "idempotency", "REMOVE #data", {}),
    ("damaged_record", "idempotency", "REMOVE validation", {}),
    ("damaged_record", "idempotency", "SET #status = :odd", {"odd": {"S": "ODD"}}),
    ("damaged_outbox", "idempotency", "SET outbox = :odd", {"odd": {"S": "[{"}}),
    (
        "unsettled_record",
        "idempotency",
        "SET #status = :open, in_progress_expiration = :past",
        {"open": {"S": "INPROGRESS"}, "past": {"N": "1"}},
    ),
    ("damaged_record", "idempotency", "SET #status = :open", {"open": {"S": "INPROGRESS"}}),
    (
        "effect_without_state",
        "idempotency",
        "SET #status = :open, in_progress_expiration = :past, effect = :noted",
        {"open": {"S": "INPROGRESS"}, "past": {"N": "1"}, "noted": {"S": "v1:x {}"}},
    ),
]


@pytest.mark.parametrize(("kind", "table", "expression", "values"), BY_HAND, ids=[case[0] for case in BY_HAND])
def test_what_a_hand_has_done_to_a_table_is_found(
    pipeline: Pipeline, deployment: Deployment, kind: str, table: str, expression: str, values: dict[str, Any]
) -> None:
    order_done(pipeline)
    order_done(pipeline, "ord_2")
    # A record without a lease is one of a step that never claimed; with one, of a payment.
    key = "ord_1" if table == "orders" else f"{'payment.charge' if 'past' in values else 'order.place'}#ord_1"

    change(pipeline.world, table, key, expression, **values)

    audit = audited(deployment)
    assert (kind, "ord_1") in kinds(audit)
    assert {finding.order_id for finding in audit.findings} == {"ord_1"}
    assert audit.wrong


def test_a_record_of_an_order_that_is_not_there_is_found(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)
    order_done(pipeline, "ord_2")
    pipeline.world.dynamodb.delete_item(TableName="orders", Key={"order_id": {"S": "ord_1"}})

    found = kinds(audited(deployment))

    assert found == [("charged_not_recorded", "ord_1"), *[("record_without_state", "ord_1")] * 3]


def test_an_order_that_moves_between_the_reads_of_its_row_and_records_is_not_suspected(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_placed(pipeline)
    pipeline.put(samples.body_of(placed(pipeline)), "payments")
    pipeline.world.wire.plan("BatchGetItem", meanwhile(pipeline.run))
    assert audited(deployment).findings == []


def test_it_reads_past_the_first_page_of_everything(
    pipeline: Pipeline, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ORDERS_A_PAGE", 2)
    monkeypatch.setattr(tables, "SCAN_PAGE", 3)
    monkeypatch.setattr("tools.ledger.PAGE", 2)
    for n in range(5):
        order_done(pipeline, f"ord_{n}")
    order_placed(pipeline, "ord_5")
    pipeline.world.wire.sent.clear()

    audit = audited(deployment)

    assert (audit.orders, audit.records, audit.charges) == (6, 16, 5)
    assert kinds(audit) == [("event_missing", "ord_5")]
    assert pipeline.world.wire.count("BatchGetItem") == 4  # pages of 3 in twos
    assert pipeline.world.wire.count("Scan") >= 2 + 6


def test_its_reads_are_throttled_to_so_many_units_a_second(
    pipeline: Pipeline, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_done(pipeline)
    monkeypatch.setattr(tables, "UNITS_PER_S", 0.5)
    before_ms = pipeline.world.clock.now_ms()

    audited(deployment)

    # At least the row and the records: four units or more, at half a unit a second.
    assert pipeline.world.clock.now_ms() - before_ms >= 8_000


def test_throttled_keys_are_asked_for_again(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)

    def half(request: Any, _: Any) -> Any:
        wanted = json.loads(request.body)["RequestItems"]
        return answer(request, {"Responses": {}, "UnprocessedKeys": wanted})

    pipeline.world.wire.plan("BatchGetItem", half)
    assert audited(deployment).findings == []
    assert pipeline.world.wire.count("TransactGetItems") == 0


def test_nobody_is_named(pipeline: Pipeline, deployment: Deployment) -> None:
    order_placed(pipeline)
    parked(pipeline.world, "orders", "ord_2", "key_reused")
    change(pipeline.world, "orders", "ord_1", "REMOVE currency")
    said = json.dumps(audited(deployment).report)
    assert "uyer" not in said
    assert "ord_1" in said


def test_the_sweeps_age_is_the_age_unless_told(deployment: Deployment) -> None:
    assert audited(deployment).age_s == SWEEP_AGE_S


@pytest.mark.parametrize(
    ("queue", "kind", "resent"),
    [("payments", "late", {}), ("orders", "event_missing", {"ord_1": "sent ord_1/order.placed"})],
)
def test_an_order_is_sent_again_unless_its_message_is_parked_in_front_of_its_next_step(
    pipeline: Pipeline, deployment: Deployment, queue: str, kind: str, resent: dict[str, str]
) -> None:
    order_placed(pipeline)
    parked(pipeline.world, queue, "ord_1", "key_reused")

    audit = audited(deployment, repair=True)

    assert kinds(audit) == [(kind, "ord_1"), ("parked", "ord_1")]
    assert audit.resent == resent
