"""Workers that are really killed, in processes of their own, with the functions as they are deployed."""

import json
import os
from typing import Any

import pytest
from shared.idempotency import outbox
from shared.orders.events import OrderPaid, OrderPlaced
from tests.harness import samples
from tests.harness.payment import Delivery, Payments

from lab.faults.plan import Fault, Kind, plan
from lab.tests.faults.conftest import KILLED, Bench

DONE: dict[str, Any] = {"batchItemFailures": []}
BEFORE, AFTER = Kind.DIE_BEFORE, Kind.DIE_AFTER


def order_message(receive_count: int = 1) -> dict[str, Any]:
    return samples.sqs_event(samples.body_of(samples.requested()), receive_count=receive_count)


@pytest.mark.parametrize(("kind", "written"), [(BEFORE, False), (AFTER, True)])
def test_an_order_worker_that_dies_at_its_write_has_written_all_or_nothing_and_the_next_one_ends_it(
    bench: Bench, kind: Kind, written: bool
) -> None:
    assert bench.run("order", order_message(), Fault(kind, 1)) == KILLED

    assert (bench.world.row("ord_1") is not None) == written
    assert (bench.world.record("order.place#ord_1") is not None) == written
    before = bench.world.row("ord_1")

    assert bench.run("order", order_message(2)) == DONE
    row = bench.world.row("ord_1")
    assert row is not None
    assert row["state"] == {"S": "placed"}
    assert before in (None, row)
    [injected] = bench.injected()
    assert (injected.kind, injected.call, injected.receive) == (kind, 1, 1)
    assert injected.pid != os.getpid()


def test_a_planned_death_comes_as_planned_and_the_next_receive_has_a_plan_of_its_own(bench: Bench) -> None:
    dies = {order: seed for order in ("ord_1",) for seed in range(200) if _dies_once(seed, order)}

    seed = str(dies["ord_1"])
    assert bench.run("order", order_message(), FAULTS_SEED=seed, FAULTS_PERCENT="100") == KILLED
    assert bench.run("order", order_message(2), FAULTS_SEED=seed, FAULTS_PERCENT="100") == DONE

    assert bench.kinds() == [AFTER]


def _dies_once(seed: int, order: str) -> bool:
    return plan(seed, 100, "order", order, 1) == Fault(AFTER, 1) and plan(seed, 100, "order", order, 2) is None


@pytest.mark.parametrize(("kind", "charged"), [(BEFORE, []), (AFTER, [("succeeded", 2500)])])
def test_a_payment_worker_that_dies_at_its_charge_has_charged_once_or_not_and_the_next_one_ends_it(
    bench: Bench, payments: Payments, kind: Kind, charged: list[tuple[str, int]]
) -> None:
    delivery = Delivery(payments.order(), "message-1")
    provider = {name: os.environ[name] for name in ("PROVIDER_URL", "PROVIDER_SECRET_ARN", "PROVIDER_LIVEMODE")}
    patience = {"PROVIDER_CONNECT_TIMEOUT_S": "1", "PROVIDER_READ_TIMEOUT_S": "5", "STEP_NEEDS_S": "15"}

    assert bench.run("payment", {"Records": [delivery.record()]}, Fault(kind), **provider, **patience) == KILLED

    assert payments.charges() == charged
    assert payments.state() == "placed"
    [injected] = bench.injected()
    assert (injected.kind, injected.order, injected.function) == (kind, "ord_1", "payment")

    payments.until_quiet(delivery)  # by the test's clock its lease is long over
    payments.settled_once()


def test_a_relay_that_dies_in_mid_batch_has_sent_a_part_and_sends_all_when_the_batch_comes_again(bench: Bench) -> None:
    placed = OrderPlaced(order_id="ord_1", currency="EUR", total=2599, payment_method="pm_card_visa")
    paid = OrderPaid(order_id="ord_2", currency="EUR", total=2599, payment_intent="pi_2")
    batch = {"Records": [stream_record("order.place", placed), stream_record("payment.charge", paid)]}
    queues = {kind: url.rsplit("/", 1)[1] for kind, url in samples.routes(bench.world).items()}
    routes = json.dumps({kind: f"{bench.url}/123456789012/{queue}" for kind, queue in queues.items()})

    assert bench.run("relay", batch, Fault(AFTER, 1), ROUTES=routes) == KILLED

    assert sent(bench) == {"payments": ["ord_1/order.placed"], "emails": []}
    [injected] = bench.injected()
    assert (injected.kind, injected.order, injected.message) == (AFTER, "ord_1", "event of ord_1")

    assert bench.run("relay", batch, ROUTES=routes) is None
    assert sent(bench) == {"payments": ["ord_1/order.placed"], "emails": ["ord_2/order.paid"]}


def stream_record(operation: str, event: OrderPlaced | OrderPaid) -> dict[str, Any]:
    key = {"S": f"{operation}#{event.order_id}"}
    text = outbox.pack([event], correlation_id="c-1", now_ms=1_767_225_600_000, trace=None)
    image = {"id": key, "status": {"S": "COMPLETED"}, "outbox": {"S": text}}
    return {"eventID": f"event of {event.order_id}", "dynamodb": {"Keys": {"id": key}, "NewImage": image}}


def sent(bench: Bench) -> dict[str, list[str]]:
    """Ids of the events that are newly in the queues."""
    return {
        queue: [json.loads(message["Body"])["id"] for message in bench.world.messages(queue)]
        for queue in ("payments", "emails")
    }
