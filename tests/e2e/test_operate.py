"""The story of an order on the deployed application. test_runbook.py runs the operator's other commands."""

import json
import os
import random
import time

import msgspec
import pytest

from shared.idempotency import cloudevent, epoch_ms, fingerprint
from shared.idempotency.runtime import SystemClock
from shared.idempotency.store import Store
from shared.orders import writes
from shared.orders.events import OrderPlaced, OrderRequested
from tests.e2e.app import App
from tools.local import logs
from tools.local.ministack import clean_environment
from tools.operate.__main__ import main

FUNCTIONS = ("Api", "Order", "Relay", "Payment", "Email")


def order_without_its_event(app: App) -> str:
    """A placed order, as the order step leaves it, but for the event in its outbox, which got lost.

    As one that was swept a moment ago it is none that the sweep would help now.
    """
    order_id = app.new_order_id()
    order = msgspec.convert({**app.new_order(), "order_id": order_id}, OrderRequested)
    dynamodb, now_ms = app.running.client("dynamodb"), epoch_ms()
    table = app.outputs["OrdersTableName"]
    Store(dynamodb, app.outputs["IdempotencyTableName"], SystemClock(), random.Random(1), 86_400, 5.0).once(
        f"order.place#{order_id}",
        fingerprint(order),
        owner=order_id.removeprefix("ord_"),  # also the transaction's token
        data="{}",
        outbox=None,
        writes=[writes.record_placed(table, order, correlation_id=f"c-{order_id}", now_ms=now_ms)],
        correlation_id=f"c-{order_id}",
        deadline_ms=now_ms + 20_000,
    )
    dynamodb.update_item(
        TableName=table,
        Key={"order_id": {"S": order_id}},
        UpdateExpression="SET open_since = :later",
        ExpressionAttributeValues={":later": {"N": str(int(time.time()) + 3600)}},
    )
    return order_id


def placed_event(app: App, order_id: str) -> str:
    """The message that the order waits for."""
    row = app.tables.order(order_id)
    assert row is not None
    event = OrderPlaced(
        order_id=order_id, currency=row["currency"], total=row["total"], payment_method=row["payment_method"]
    )
    return msgspec.json.encode(cloudevent(event, correlation_id=f"c-{order_id}", time="2026-01-01T00:00:00Z")).decode()


def test_a_story_has_moments_of_every_source_and_names_nobody(
    app: App, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order = app.new_order("pm_sandbox_error_after")
    order_id = app.place(order)
    app.final(order_id)
    for function in FUNCTIONS:
        logs.flush(app.running, app.outputs[f"{function}FunctionName"])

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in (clean_environment() | app.running.environment).items():
        monkeypatch.setenv(name, value)

    status = main(["trace", order_id, "--json"])

    text = capsys.readouterr().out
    story = json.loads(text)
    assert (status, story["row"]["state"], story["receipt_at"] is not None) == (0, "paid", True)
    by_operation = {record["operation"]: record for record in story["records"]}
    assert list(by_operation) == ["order.request", "order.place", "payment.charge", "email.send"]
    assert (by_operation["payment.charge"]["attempt"], by_operation["payment.charge"]["uncertain"]) == (2, True)
    assert [charge["status"] for charge in story["charges"]] == ["succeeded"]
    assert [intent["on_the_row"] for intent in story["intents"]] == [True]
    told_by = {moment["who"] for moment in story["moments"]}
    assert told_by >= {"order row", "provider", "bucket", "order", "payment", "email", "relay"}
    assert [moment["at"] for moment in story["moments"]] == sorted(moment["at"] for moment in story["moments"])
    assert any(moment["what"].startswith("to be retried") for moment in story["moments"])
    assert order["customer"]["email"] not in text
    assert order["customer"]["name"] not in text
