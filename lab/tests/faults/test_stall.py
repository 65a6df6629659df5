"""A worker that stalls past its lease, within Lambda's time, and goes on as a zombie."""

import json
from typing import Any

import pytest
from functions.payment.handler import handler
from tests.harness.payment import WORKER_S, Delivery, Payments, metrics

from lab.faults.plan import Fault, Kind
from lab.tests.faults.conftest import Bench
from lab.tests.faults.test_hooks import DONE, message


def test_a_stalled_payment_is_taken_over_and_the_zombie_charges_nobody_and_writes_nothing(
    bench: Bench, payments: Payments, capsys: pytest.CaptureFixture[str]
) -> None:
    order = payments.order()
    original, copy = Delivery(order, "message-1"), Delivery(order, "message-2")
    taken: list[list[str]] = []

    def another_takes_it(seconds: float) -> None:
        bench.world.clock.advance(seconds)
        taken.append(payments.deliver(copy))

    worker = bench.worker(handler, "payment", Fault(Kind.STALLED), sleep=another_takes_it)
    answer = worker({"Records": [original.record()]}, bench.world.context(WORKER_S))

    assert taken == [[]]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}
    payments.settled_once()
    counts = metrics(capsys.readouterr().out)
    assert (counts["Takeover"], counts["LeaseLost"], counts["FirstRun"]) == (1, 1, 1)
    assert bench.kinds() == [Kind.STALLED]


def test_its_message_is_delivered_again_when_its_lease_is_over(bench: Bench) -> None:
    sqs, payments = bench.world.sqs, bench.world.queues["payments"]
    sqs.send_message(QueueUrl=payments, MessageBody="of ord_1")
    [received] = sqs.receive_message(QueueUrl=payments, VisibilityTimeout=600)["Messages"]
    event = message("ord_1", "ord_2")
    event["Records"][0]["receiptHandle"] = received["ReceiptHandle"]
    dynamodb = bench.client("dynamodb")

    def work(*_: Any) -> Any:
        dynamodb.put_item(TableName="orders", Item={"order_id": {"S": "ord_1"}})
        return DONE

    assert bench.worker(work, "payment", Fault(Kind.STALLED, 1))(event, bench.world.context(120)) == DONE

    hidden = [json.loads(body) for operation, body in bench.gateway.received if operation.startswith("ChangeMessage")]
    assert [(asked["ReceiptHandle"], asked["VisibilityTimeout"]) for asked in hidden] == [
        (received["ReceiptHandle"], 93)  # whole seconds of 93.5: the lease ends after 92
    ]


def test_without_a_fault_the_handler_gets_what_lambda_gave(bench: Bench) -> None:
    given: list[Any] = []
    event, context = message("ord_1"), bench.world.context()

    assert bench.worker(lambda *both: given.append(both) or DONE)(event, context) == DONE  # type: ignore[func-returns-value]

    [(passed, in_context)] = given
    assert passed is event
    assert in_context is context
