"""An operator's commands on the deployed app: each breaks something first, then looks, mends, and looks again."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from shared.idempotency import cloudevent, epoch_ms, fingerprint
from shared.idempotency.runtime import SystemClock
from shared.idempotency.store import Store
from shared.orders import writes
from shared.orders.events import OrderPlaced, OrderRequested
from tests.e2e.app import WITHIN_S, App
from tools.local import logs
from tools.local.ministack import ROOT, clean_environment
from tools.operate.__main__ import main
from tools.progress import wait_until

FUNCTIONS = ("Api", "Order", "Relay", "Payment", "Email")


@dataclass(frozen=True)
class Ran:
    """A command that ended: its exit status, and what it said to machines."""

    status: int
    said: Any
    text: str


@dataclass(frozen=True)
class Operator:
    """Gives the commands as make does, without a process for each: they take longer to start than to run."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *command: str) -> Ran:
        status = main([*command, "--json"])
        written = self.capsys.readouterr()
        assert written.out, written.err
        return Ran(status, json.loads(written.out), written.out)

    def parked(self, queue: str) -> dict[str, str]:
        """What the dlq command shows of one DLQ: reasons by order."""
        (found,) = (letters for letters in self("dlq").said["queues"] if letters["queue"] == queue)
        return {message["order_id"]: message["reason"] for message in found["messages"]}


@pytest.fixture
def operate(app: App, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Operator]:
    """The commands, aimed at this app; what a test parked for good is deleted after it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in (clean_environment() | app.running.environment).items():
        monkeypatch.setenv(name, value)
    yield Operator(capsys)
    sqs = app.running.client("sqs")
    for name in ("OrdersDlqUrl", "PaymentsDlqUrl", "EmailsDlqUrl"):
        sqs.purge_queue(QueueUrl=app.outputs[name])


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


def wrong_about(ran: Ran, order_id: str) -> list[str]:
    assert ran.status == int(bool(ran.said["wrong"]))
    return [finding["kind"] for finding in ran.said["wrong"] if finding["order_id"] == order_id]


def test_what_an_outage_parked_is_shown_redriven_and_finished(app: App, operate: Operator) -> None:
    order_id = order_without_its_event(app)
    app.queues.send("PaymentsDlq", placed_event(app, order_id))  # as SQS does with one that was received too often

    assert operate("dlq").status == 1
    assert operate.parked("payments") == {order_id: "none"}
    assert "late" in wrong_about(operate("audit", "--age", "0"), order_id)

    dry = operate("redrive", "payments", "--dry-run")
    assert (dry.status, dry.said["moved"]) == (0, {"none": 1})
    assert operate.parked("payments") == {order_id: "none"}

    moved = operate("redrive", "payments")
    assert (moved.status, moved.said["moved"], moved.said["by_task"]) == (0, {"none": 1}, False)
    assert app.final(order_id)["state"] == "paid"
    assert len(app.ledger.charges_of(order_id)) == 1
    assert operate.parked("payments") == {}
    assert wrong_about(operate("audit", "--age", "0"), order_id) == []

    again = operate("redrive", "payments")
    assert (again.status, again.said["moved"]) == (0, {})


def test_what_was_parked_for_a_reason_stays_until_it_is_asked_for_by_name(app: App, operate: Operator) -> None:
    order_id = app.put(app.new_order())
    app.final(order_id)
    app.put(app.new_order(quantity=9), order_id)  # another request under the same id
    other = app.put(app.new_order(), f"api_{order_id}")
    app.queues.send("Orders", "not an event")
    shown = {order_id: "key_reused", other: "reserved_order_id", None: "unparsable"}
    wait_until(lambda: operate.parked("orders") == shown, deadline_s=WITHIN_S, what="three parked messages")

    left = operate("redrive", "orders")
    assert (left.status, left.said["moved"]) == (0, {})
    assert left.said["left"] == {"key_reused": 1, "reserved_order_id": 1, "unparsable": 1}
    audit = operate("audit", "--age", "0")
    assert (audit.status, wrong_about(audit, order_id)) == (1, ["parked"])

    moved = operate("redrive", "orders", "--reason", "reserved_order_id")
    assert moved.said["moved"] == {"reserved_order_id": 1}
    # Nothing has been mended, so its step parks it once more; the others have not moved.
    wait_until(lambda: operate.parked("orders") == shown, deadline_s=WITHIN_S, what="it to be parked again")


def test_an_order_whose_event_got_lost_is_found_repaired_and_finished(app: App, operate: Operator) -> None:
    order_id = order_without_its_event(app)

    assert wrong_about(operate("audit", "--age", "0"), order_id) == ["event_missing"]

    repaired = operate("audit", "--age", "0", "--repair")
    assert repaired.said["resent"][order_id] == f"sent {order_id}/order.placed"
    assert app.final(order_id)["state"] == "paid"
    assert len(app.ledger.charges_of(order_id)) == 1
    assert wrong_about(operate("audit", "--age", "0"), order_id) == []


def test_an_orders_story_is_told_by_all_who_had_a_part_in_it_and_names_nobody(app: App, operate: Operator) -> None:
    order = app.new_order("pm_sandbox_error_after")
    order_id = app.place(order)
    app.final(order_id)
    for function in FUNCTIONS:
        logs.flush(app.running, app.outputs[f"{function}FunctionName"])

    ran = operate("trace", order_id)

    story = ran.said
    assert (ran.status, story["row"]["state"], story["receipt_at"] is not None) == (0, "paid", True)
    by_operation = {record["operation"]: record for record in story["records"]}
    assert list(by_operation) == ["order.request", "order.place", "payment.charge", "email.send"]
    assert (by_operation["payment.charge"]["attempt"], by_operation["payment.charge"]["uncertain"]) == (2, True)
    assert [charge["status"] for charge in story["charges"]] == ["succeeded"]
    assert [intent["on_the_row"] for intent in story["intents"]] == [True]
    told_by = {moment["who"] for moment in story["moments"]}
    assert told_by >= {"order row", "provider", "bucket", "order", "payment", "email", "relay"}
    assert [moment["at"] for moment in story["moments"]] == sorted(moment["at"] for moment in story["moments"])
    assert any(moment["what"].startswith("to be retried") for moment in story["moments"])
    assert order["customer"]["email"] not in ran.text
    assert order["customer"]["name"] not in ran.text


def test_as_a_process_it_ends_with_the_status_and_prints_nothing_else(app: App) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.operate", "trace", "ord_never", "--json"],
        cwd=ROOT,
        env=clean_environment() | app.running.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["row"]) == (1, None), done.stderr
