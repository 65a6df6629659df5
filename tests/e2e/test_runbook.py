"""The runbook: each test breaks the running stack in a section's way, then gives its commands as they stand there."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import stripe
from botocore.exceptions import ClientError

from shared.idempotency import BODY_LIMIT_BYTES, epoch_ms, iso
from tests.e2e.app import WITHIN_S, App
from tests.e2e.test_operate import order_without_its_event, placed_event
from tests.harness import runbook
from tests.harness.runbook import Operator
from tools.local import logs
from tools.progress import wait_until

HEADINGS: list[str] = []
AGE_S = 60  # at which the local audit judges


def about(heading: str) -> Callable[[Any], Any]:
    """The test gives all commands of this section."""

    def mark(test: Any) -> Any:
        HEADINGS.append(heading)
        test.heading = heading
        return test

    return mark


@pytest.fixture
def give(app: App, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Operator]:
    """The operator, who has given every command of the section by the end. What is parked then is deleted."""
    operator = Operator(request.function.heading, app.running.environment, tmp_path)
    yield operator
    sqs = app.running.client("sqs")
    for url in dlq_urls(app):
        sqs.purge_queue(QueueUrl=url)
    assert operator.left == [], f"commands of the runbook that nobody gave, {operator.heading}"


def dlq_urls(app: App) -> list[str]:
    relay = app.running.client("lambda").get_function_configuration(FunctionName=app.outputs["RelayFunctionName"])
    urls = [app.outputs[name] for name in ("OrdersDlqUrl", "PaymentsDlqUrl", "EmailsDlqUrl")]
    return [*urls, relay["Environment"]["Variables"]["DLQ_URL"]]


@contextmanager
def configured(app: App, function: str, **changes: Any) -> Iterator[None]:
    """The function as a deploy would have changed it; as it was in the end."""
    client, name = app.running.client("lambda"), app.outputs[f"{function}FunctionName"]
    before = client.get_function_configuration(FunctionName=name)
    client.update_function_configuration(FunctionName=name, **changes)
    try:
        yield
    finally:
        client.update_function_configuration(FunctionName=name, **{key: before[key] for key in changes})


@contextmanager
def impatient(app: App, queue: str, **attributes: str) -> Iterator[None]:
    """The queue with these attributes; as it was in the end."""
    sqs, url = app.running.client("sqs"), app.outputs[f"{queue}QueueUrl"]
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[*attributes])["Attributes"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=url, Attributes=before)


def parks_after(app: App, queue: str, receives: int) -> dict[str, str]:
    """The attribute that makes a queue park after so many receives."""
    sqs, url = app.running.client("sqs"), app.outputs[f"{queue}QueueUrl"]
    policy = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]["RedrivePolicy"]
    return {"RedrivePolicy": json.dumps({**json.loads(policy), "maxReceiveCount": receives})}


@contextmanager
def paused(app: App, *queues: str) -> Iterator[None]:
    """Nobody takes messages from these queues, so that a test can get at an order on its way."""
    try:
        for queue in queues:
            mapping(app, queue, enabled=False)
        yield
    finally:
        for queue in queues:
            mapping(app, queue, enabled=True)


def mapping(app: App, queue: str, *, enabled: bool) -> None:
    client, sqs = app.running.client("lambda"), app.running.client("sqs")
    url = app.outputs[f"{queue}QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    (found,) = client.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
    client.update_event_source_mapping(UUID=found["UUID"], Enabled=enabled)


def eventually(look: Callable[[], Any], what: str) -> Any:
    return wait_until(look, deadline_s=WITHIN_S, what=what)


def parked(app: App, queue: str, count: int) -> Callable[[], bool]:
    return lambda: app.queues.depth(f"{queue}Dlq").visible >= count


def reached(app: App, order_id: str, state: str) -> dict[str, Any]:
    """The order's row once it is in that state."""

    def look() -> dict[str, Any] | None:
        row = app.tables.order(order_id)
        return row if row and row["state"] == state else None

    return wait_until(look, deadline_s=WITHIN_S, what=f"{order_id} to be {state}")


def charged_once(app: App, *order_ids: str) -> None:
    for order_id in order_ids:
        assert app.final(order_id)["state"] == "paid"
        assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["succeeded"]


def change_row(app: App, order_id: str, expression: str, **values: Any) -> None:
    """A hand in the orders table."""
    app.running.client("dynamodb").update_item(
        TableName=app.outputs["OrdersTableName"],
        Key={"order_id": {"S": order_id}},
        UpdateExpression=expression,
        **({"ExpressionAttributeValues": {f":{name}": value for name, value in values.items()}} if values else {}),
    )


def put_record(app: App, key: str, **attributes: Any) -> None:
    """A hand in the idempotency table."""
    item = {"id": {"S": key}, "expiration": {"N": str(int(time.time()) + 3600)}, **attributes}
    app.running.client("dynamodb").put_item(TableName=app.outputs["IdempotencyTableName"], Item=item)


def change_record(app: App, key: str, name: str, value: dict[str, str]) -> None:
    app.running.client("dynamodb").update_item(
        TableName=app.outputs["IdempotencyTableName"],
        Key={"id": {"S": key}},
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value},
    )


@about("A message is in a DLQ")
def test_a_poison_message_is_seen_told_apart_kept_and_discarded(app: App, give: Operator) -> None:
    order_id = app.new_order_id()
    app.put(app.new_order(quantity=0), order_id)
    app.queues.send("Orders", "not an event, from A. Buyer")
    eventually(parked(app, "Orders", 2), "two poison messages to be parked")
    logs.flush(app.running, app.outputs["OrderFunctionName"])

    seen = give("make dlq")
    assert seen.status != 0
    assert "1 unparsable" in seen.said
    assert f"{order_id}  schema_invalid" in seen.said
    assert "Buyer" not in seen.said
    assert "quantity" in give("make trace ORDER=$ORDER", ORDER=order_id).said

    kept = give.home / "effectively-once-local-discarded.jsonl"
    done = give("make discard QUEUE=orders REASON=unparsable", typed="orders unparsable")
    assert done.status == 0
    assert "discarded 1 unparsable" in done.said
    assert kept.stat().st_mode & 0o777 == 0o600
    (line,) = kept.read_text().splitlines()
    assert json.loads(line)["MessageBody"] == "not an event, from A. Buyer"

    assert "moved 1 schema_invalid" in give("make redrive QUEUE=orders REASON=schema_invalid").said
    eventually(parked(app, "Orders", 1), "what was not mended to be parked again")
    app.running.client("sqs").send_message(**json.loads(line))
    left = give("make dlq").said
    assert "orders: 2 parked" in left
    assert "1 unparsable" in left
    assert f"{order_id}  schema_invalid" in left


@about("A message is too large")
def test_a_message_that_is_too_large_is_parked_unread_and_discarded(app: App, give: Operator) -> None:
    order_id = app.put(app.new_order())
    app.final(order_id)
    sqs, url = app.running.client("sqs"), app.outputs["OrdersQueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x" * (BODY_LIMIT_BYTES + 1))
    eventually(parked(app, "Orders", 1), "the large message to be parked")
    with pytest.raises(ClientError, match="73728 bytes"):
        sqs.send_message(QueueUrl=url, MessageBody="x" * 80_000)

    assert "1 too_large" in give("make dlq").said
    assert "moved 1 too_large" in give("make redrive QUEUE=orders REASON=too_large").said
    eventually(parked(app, "Orders", 1), "the large message to be parked again")
    discarded = give("make discard QUEUE=orders REASON=too_large", typed="orders too_large")
    assert "discarded 1 too_large" in discarded.said
    assert "orders: empty" in give("make dlq").said


@about("A key was reused")
def test_a_second_request_under_a_taken_key_changes_nothing_and_is_discarded(app: App, give: Operator) -> None:
    order_id = app.put(app.new_order())
    before = app.final(order_id)
    app.put(app.new_order(quantity=9), order_id)
    eventually(parked(app, "Orders", 1), "the other request to be parked")

    assert f"{order_id}  key_reused" in give("make dlq").said
    assert "parked, reason key_reused" in give("make trace ORDER=$ORDER", ORDER=order_id).said
    assert "moved 1 key_reused" in give("make redrive QUEUE=orders REASON=key_reused").said
    eventually(parked(app, "Orders", 1), "the false one to be parked again")
    discarded = give("make discard QUEUE=orders REASON=key_reused", typed="orders key_reused")
    assert "discarded 1 key_reused" in discarded.said

    last = give("make trace ORDER=$ORDER", ORDER=order_id).said
    assert f"state paid, total {before['total']}" in last
    assert "orders DLQ" not in last
    assert app.final(order_id) == before
    charged_once(app, order_id)


@about("A record is damaged")
def test_a_region_of_damaged_records_is_cleared_and_its_orders_finish(app: App, give: Operator) -> None:
    first, *others = orders = [app.new_order_id() for _ in range(3)]
    for order_id in orders:
        put_record(app, f"payment.charge#{order_id}", status={"S": "INPROGRESS"})  # no lease: it would never end
    put_record(app, f"email.send#{first}", status={"S": "HALF"})
    for order_id in orders:
        app.put(app.new_order(), order_id)
    eventually(parked(app, "Payments", 3), "three messages to be parked")

    seen = give("make audit").said
    assert "4 damaged_record" in seen
    assert all(f"{order_id}  payment.charge has no fingerprint" in seen for order_id in orders)
    assert "payment.charge  INPROGRESS" in give("make trace ORDER=$ORDER", ORDER=first).said

    mistyped = Operator(give.heading, give.environment, give.home)
    assert mistyped("make forget KEY=payment.charge#$ORDER", typed="yes", ORDER=first).status != 0
    assert app.tables.record(f"payment.charge#{first}") is not None
    key = f"payment.charge#{first}"
    assert f"{key}: forgotten" in give("make forget KEY=payment.charge#$ORDER", typed=key, ORDER=first).said
    region = "for ORDER in $ORDERS; do make forget KEY=payment.charge#$ORDER YES=1; done"
    assert give(region, ORDERS=" ".join(others)).said.count(": forgotten") == 2

    redriven = give("make redrive QUEUE=payments REASON=damaged_record").said
    assert re.search(r"moved \d+ damaged_record", redriven)  # 3, or more if the sweep sent an event again meanwhile
    eventually(parked(app, "Emails", 1), "the mail of the first to be parked")
    key = f"email.send#{first}"
    forgotten = give("make forget KEY=email.send#$ORDER SECOND_MAIL=1", typed=key, ORDER=first)
    assert f"{key}: forgotten" in forgotten.said
    assert "moved 1 damaged_record" in give("make redrive QUEUE=emails REASON=damaged_record").said

    charged_once(app, *orders)
    last = give("make audit").said
    assert not any(order_id in last for order_id in orders)


@about("An effect without its state")
def test_a_row_that_names_another_orders_intent_is_put_right_and_redriven(app: App, give: Operator) -> None:
    other = app.final(app.put(app.new_order()))
    with paused(app, "Payments"):
        order_id = app.put(app.new_order())
        reached(app, order_id, "placed")
        change_row(app, order_id, "SET intent_id = :intent", intent={"S": other["intent_id"]})
    eventually(parked(app, "Payments", 1), "the message to be parked")

    assert f"{order_id}  payments DLQ, reason effect_without_state" in give("make audit").said
    story = give("make trace ORDER=$ORDER", ORDER=order_id).said
    assert f"intent_id {other['intent_id']}" in story

    change_row(app, order_id, "REMOVE intent_id")  # the person's decision: nothing was charged for this order
    assert "moved 1 effect_without_state" in give("make redrive QUEUE=payments REASON=effect_without_state").said
    charged_once(app, order_id, other["order_id"])
    assert order_id not in give("make audit").said


@about("An intent is missing")
def test_an_intent_that_the_provider_does_not_know_is_corrected_and_redriven(app: App, give: Operator) -> None:
    with paused(app, "Payments"):
        order_id = app.put(app.new_order())
        reached(app, order_id, "placed")
        intent = intent_of(provider_of(app), app, order_id)
        change_row(app, order_id, "SET intent_id = :intent", intent={"S": "pi_unknown"})
    eventually(parked(app, "Payments", 1), "the message to be parked")

    assert f"{order_id}  intent_missing" in give("make dlq").said
    story = give("make trace ORDER=$ORDER", ORDER=order_id).said
    assert "intent_id pi_unknown" in story
    assert intent in story

    change_row(app, order_id, "SET intent_id = :intent", intent={"S": intent})
    moved = give("make redrive QUEUE=payments REASON=intent_missing").said
    assert re.search("moved [12] intent_missing", moved)  # the sweep may have sent the event again in the meantime
    charged_once(app, order_id)
    assert order_id not in give("make audit").said


@about("An order can never be paid")
def test_an_order_that_the_provider_refuses_is_declined_by_a_person_and_told_by_email(app: App, give: Operator) -> None:
    order_id = app.put(app.new_order(payment_method="pm_nobody"))
    eventually(parked(app, "Payments", 1), "the message to be parked")
    logs.flush(app.running, app.outputs["PaymentFunctionName"])
    assert "reason payment_method_missing" in give("make trace ORDER=$ORDER", ORDER=order_id).said
    command = "make discard QUEUE=payments REASON=payment_method_missing"
    said = give(command, typed="payments payment_method_missing").said
    assert "1 orders stay open" in said
    assert order_id in said

    settle = "make settle ORDER=$ORDER AS=declined REASON=payment_method_missing"
    done = give(settle, typed=order_id, ORDER=order_id)

    assert done.status == 0
    assert f"{order_id}: declined, reason payment_method_missing; it had no intent" in done.said
    assert app.final(order_id)["mail"] == "decline"
    assert "nothing" in give("make redrive QUEUE=payments REASON=payment_method_missing").said
    assert order_id not in give("make audit").said


@about("The API key is wrong")
def test_a_secret_without_a_key_is_named_and_orders_finish_after_it_is_corrected(app: App, give: Operator) -> None:
    secrets, secret = app.running.client("secretsmanager"), app.outputs["PaymentSandboxSecretArn"]
    right = secrets.get_secret_value(SecretId=secret)["SecretString"]
    client, name = app.running.client("lambda"), app.outputs["PaymentFunctionName"]
    secrets.put_secret_value(SecretId=secret, SecretString="\u200b" + right)
    try:
        with paused(app, "Payments"):
            order_id = app.put(app.new_order())
            reached(app, order_id, "placed")
            an_hour_ago = iso(epoch_ms() - 3_600_000)
            change_row(app, order_id, "SET placed_at = :at", at={"S": an_hour_ago})
            told = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        with configured(app, "Payment", Environment={"Variables": {**told, "NEW_WORKERS": "1"}}):
            eventually(parked(app, "Payments", 1), "the message to be parked")
        logs.flush(app.running, name)
        story = give("make trace ORDER=$ORDER", ORDER=order_id).said
        assert "not printable ASCII" in story
        assert right not in story
    finally:
        secrets.put_secret_value(SecretId=secret, SecretString=right)

    # The restored configuration starts new workers, which fetch the key at once.
    moved = give("make redrive QUEUE=payments REASON=api_key_unusable").said
    assert re.search("moved [12] api_key_unusable", moved)  # the sweep may have sent the event again in the meantime
    charged_once(app, order_id)
    for reason in ("api_key_refused", "permission_denied", "wrong_mode"):
        assert "nothing" in give(f"make redrive QUEUE=payments REASON={reason}").said
    assert give("make dlq").status == 0
    assert order_id not in give("make audit").said


@about("The provider is down")
def test_an_outage_parks_what_it_outlasts_and_a_pause_keeps_the_rest_waiting(app: App, give: Operator) -> None:
    client = app.running.client("lambda")
    told = client.get_function_configuration(FunctionName=app.outputs["PaymentFunctionName"])["Environment"][
        "Variables"
    ]
    nowhere = {"Variables": {**told, "PROVIDER_URL": "http://127.0.0.1:9"}}
    try:
        with (
            configured(app, "Payment", Environment=nowhere),
            impatient(app, "Payments", **parks_after(app, "Payments", 2)),
        ):
            early = app.put(app.new_order())
            eventually(parked(app, "Payments", 1), "the outage to outlast a message")
            logs.flush(app.running, app.outputs["PaymentFunctionName"])
            story = give("make trace ORDER=$ORDER", ORDER=early)
            assert "to be retried" in story.said
            assert "APIConnectionError" in story.said

            assert "payments: Disabled, was Enabled" in give("make pause QUEUE=payments").said
            late = app.put(app.new_order())
            eventually(lambda: app.queues.depth("Payments").visible == 1, "a message that waits")
        assert app.queues.depth("PaymentsDlq").visible == 1
        assert "payments: Enabled, was Disabled" in give("make resume QUEUE=payments").said
    finally:
        mapping(app, "Payments", enabled=True)

    charged_once(app, late)
    assert "moved 1 without a reason" in give("make redrive QUEUE=payments").said
    charged_once(app, early)
    assert "payments: empty" in give("make dlq").said
    last = give("make audit").said
    assert not {early, late} & set(last.split())


@about("A bad deploy")
def test_a_broken_handler_parks_nothing_and_its_orders_go_on_once_it_is_mended(app: App, give: Operator) -> None:
    try:
        with (
            impatient(app, "Orders", VisibilityTimeout="4"),  # a worker that dies gives its messages back after that
            configured(app, "Order", Handler="functions.order.handler.no_such_handler"),
        ):
            order_id = app.put(app.new_order())
            eventually(lambda: app.queues.depth("Orders").in_flight == 1, "a worker to die with the message")
            broken = give("make trace ORDER=$ORDER", ORDER=order_id)
            assert "no such order is known" in broken.said
            assert "orders: Disabled" in give("make pause QUEUE=orders").said
        assert "orders: Enabled" in give("make resume QUEUE=orders").said
    finally:
        mapping(app, "Orders", enabled=True)

    charged_once(app, order_id)
    assert "state paid" in give("make trace ORDER=$ORDER", ORDER=order_id).said
    assert "orders: empty" in give("make dlq").said


@about("Orders stand still")
def test_an_event_that_the_relay_can_not_read_is_sent_from_the_row(app: App, give: Operator) -> None:
    order_id = order_without_its_event(app)
    long_ago = {"S": iso(epoch_ms() - 2 * AGE_S * 1000)}
    change_row(app, order_id, "SET requested_at = :at, placed_at = :at", at=long_ago)
    change_record(app, f"order.place#{order_id}", "outbox", {"S": "garbage"})
    eventually(lambda: len(relays_dlq(app)) == 1, "the relay to give up the record")

    seen = give("make audit").said
    assert "event_missing" in seen
    assert f"{order_id}  placed since" in seen
    assert "1 damaged_outbox" in seen
    assert "state placed" in give("make trace ORDER=$ORDER", ORDER=order_id).said
    assert f"{order_id}  unreadable_outbox" in give("make dlq").said

    assert f"sent {order_id}/order.placed" in give("make audit REPAIR=1").said
    charged_once(app, order_id)
    key = f"order.place#{order_id}"
    assert f"{key}: forgotten" in give("make forget KEY=order.place#$ORDER", typed=key, ORDER=order_id).said
    discarded = give("make discard QUEUE=relay REASON=unreadable_outbox", typed="relay unreadable_outbox")
    assert "relay: discarded 1 unreadable_outbox" in discarded.said

    last = give("make audit").said
    assert "damaged_outbox" not in last
    assert "record_missing (a note)" in last
    # Other tests of this stack may have left missing records too.
    assert re.search(f"{order_id}  .*order.place", last)


def relays_dlq(app: App) -> list[str]:
    """What lies in the relay's failure queue, as far as SQS counts it."""
    found = app.running.client("sqs").get_queue_attributes(
        QueueUrl=dlq_urls(app)[-1], AttributeNames=["ApproximateNumberOfMessages"]
    )["Attributes"]
    return ["message"] * int(found["ApproximateNumberOfMessages"])


@about("A redrive after days")
def test_ten_days_later_a_redrive_still_charges_nobody_twice(app: App, give: Operator) -> None:
    paid = app.put(app.new_order())
    app.final(paid)
    app.queues.send("PaymentsDlq", placed_event(app, paid))
    with paused(app, "Payments"):
        # Its worker died between the charge and the commit: the row names the intent, and knows no charge.
        unaware = app.put(app.new_order())
        reached(app, unaware, "placed")
        intent = charge_as_a_worker_that_dies(app, unaware)
        change_row(app, unaware, "SET intent_id = :intent", intent={"S": intent})
        app.running.client("sqs").purge_queue(QueueUrl=app.outputs["PaymentsQueueUrl"])
    app.queues.send("PaymentsDlq", placed_event(app, unaware))
    for order_id in (paid, unaware):
        for operation in ("order.place", "payment.charge", "email.send"):
            if app.tables.record(f"{operation}#{order_id}"):
                change_record(app, f"{operation}#{order_id}", "expiration", {"N": str(int(time.time()) - 1)})
    app.ledger.prune_keys()

    assert "payments: 2 parked" in give("make dlq").said
    assert "would move 2" in give("make redrive QUEUE=payments DRY_RUN=1").said
    assert "moved 2" in give("make redrive QUEUE=payments").said
    charged_once(app, paid, unaware)
    last = give("make audit").said
    assert "paid_twice" not in last
    assert "charged_not_recorded" not in last


def charge_as_a_worker_that_dies(app: App, order_id: str) -> str:
    """Make an order's intent and confirm it, as the payment step does; answers its id."""
    api = provider_of(app)
    intent = intent_of(api, app, order_id)
    assert api.v1.payment_intents.confirm(intent).status == "succeeded"
    return intent


def provider_of(app: App) -> stripe.StripeClient:
    return stripe.StripeClient(
        "sk_test_worker", base_addresses={"api": app.outputs["PaymentSandboxUrl"]}, max_network_retries=2
    )


def intent_of(api: stripe.StripeClient, app: App, order_id: str) -> str:
    """Make an order's intent as the payment step does; its id."""
    order = app.tables.order(order_id)
    assert order is not None
    return api.v1.payment_intents.create(
        {
            "amount": order["total"],
            "currency": order["currency"].lower(),
            "payment_method": order["payment_method"],
            "metadata": {"order_id": order_id},
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        },
        {"idempotency_key": order_id},
    ).id


@about("The idempotency table was lost")
def test_without_any_record_everything_runs_again_and_nobody_is_charged_twice(app: App, give: Operator) -> None:
    done = app.put(app.new_order())
    app.final(done)
    with paused(app, "Payments"):
        waiting, lost = app.put(app.new_order()), order_without_its_event(app)
        reached(app, waiting, "placed")
        app.tables.forget()
        app.queues.send("Payments", placed_event(app, done))  # a duplicate of what was done long ago
        seen = give("make audit").said
        assert "record_missing (a note)" in seen

    assert f"sent {lost}/order.placed" in give("make audit REPAIR=1 AGE=0").said
    charged_once(app, done, waiting, lost)
    last = give("make audit").said
    assert "paid_twice" not in last
    assert not {done, waiting, lost} & {line.split()[0] for line in last.splitlines() if " since " in line}


@about("The orders table was lost")
def test_rows_from_an_older_copy_are_put_back_and_nobody_is_charged_twice(app: App, give: Operator) -> None:
    whole = app.put(app.new_order())
    app.final(whole)
    with paused(app, "Payments"):
        older = app.put(app.new_order())
        reached(app, older, "placed")
        copy = copied(app)
    charged_once(app, whole, older)
    app.ledger.prune_keys()
    for order_id in (whole, older):
        app.running.client("dynamodb").delete_item(
            TableName=app.outputs["OrdersTableName"], Key={"order_id": {"S": order_id}}
        )
    try:
        stopped = give("for QUEUE in orders payments emails; do make pause QUEUE=$QUEUE; done").said
        assert stopped.count(": Disabled, was Enabled") == 3
        seen = give("make audit AGE=0").said
        assert f"{whole}  payment.charge is done, and there is no such order" in seen
        assert "2 charged_not_recorded" in seen

        assert (
            "put back 2 rows, 1 of them with the intent that was charged"
            in give("make recover FROM=$COPY", COPY=copy).said
        )
        for command, operation in (
            ("make forget KEY=payment.charge#$ORDER", "payment.charge"),
            ("make forget KEY=email.send#$ORDER SECOND_MAIL=1", "email.send"),
        ):
            assert give(command, typed=f"{operation}#{older}", ORDER=older).status == 0
        started = give("for QUEUE in orders payments emails; do make resume QUEUE=$QUEUE; done").said
        assert started.count(": Enabled, was Disabled") == 3
    finally:
        for queue in ("Orders", "Payments", "Emails"):
            mapping(app, queue, enabled=True)
        app.running.client("dynamodb").delete_table(TableName=copy)

    repaired = give("make audit REPAIR=1 AGE=0").said
    assert f"sent {older}/order.placed" in repaired or older not in repaired  # the sweep may have sent the event first
    charged_once(app, whole, older)
    last = give("make audit AGE=0").said
    assert "paid_twice" not in last
    assert "charged_not_recorded" not in last
    assert not {whole, older} & set(last.split())


def copied(app: App) -> str:
    """The orders table as it is now under another name, as point-in-time recovery leaves it. Answers that name."""
    dynamodb, copy = app.running.client("dynamodb"), f"orders-copy-{app.new_order_id()[-8:]}"
    dynamodb.create_table(
        TableName=copy,
        KeySchema=[{"AttributeName": "order_id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "order_id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for page in dynamodb.get_paginator("scan").paginate(TableName=app.outputs["OrdersTableName"]):
        for item in page["Items"]:
            dynamodb.put_item(TableName=copy, Item=item)
    return copy


def test_every_section_that_has_commands_is_tested() -> None:
    with_commands = [heading for heading, text in runbook.sections().items() if runbook.commands(text)]
    assert sorted(HEADINGS) == sorted(with_commands)


def test_no_command_is_written_that_no_test_gives_but_those_that_only_aws_can_do() -> None:
    assert runbook.kinds() == {runbook.TESTED, runbook.FOR_AN_ACCOUNT}
    only_aws = runbook.commands(runbook.TEXT, runbook.FOR_AN_ACCOUNT)
    assert only_aws == runbook.commands(runbook.sections()["The orders table was lost"], runbook.FOR_AN_ACCOUNT)
    known = {*runbook.commands(runbook.TEXT), "make up"}
    assert set(re.findall(r"`(make [^`]+)`", runbook.TEXT)) <= known
