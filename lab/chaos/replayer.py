"""Replay dead-letter queues as an operator does: each message returns to its queue under a new message id."""

import threading
from collections.abc import Iterable

from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES

from lab.faults.order_calls import RECEIVED_BEFORE
from lab.variants import Variant

EVERY_S = 1.0


class Replayer:
    """Moves messages back and counts them by variant. A message that was parked with a reason stays: it needs a person.

    `receives` is the number of receives after which SQS moved the message to its DLQ.
    """

    def __init__(self, running: LocalDeployment, variants: Iterable[Variant], receives: int) -> None:
        self._receives = receives
        self._sqs = running.client("sqs")
        self._outputs = {variant.name: variant.of(running).outputs for variant in variants}
        self.replayed = dict.fromkeys(self._outputs, 0)

    def run(self, stop: threading.Event) -> None:
        """Replay until `stop` is set."""
        while not stop.wait(EVERY_S):
            self.once()

    def once(self) -> None:
        for variant, outputs in self._outputs.items():
            for name in QUEUES:
                self.replayed[variant] += self._replay(outputs[f"{name}DlqUrl"], outputs[f"{name}QueueUrl"])

    def _replay(self, dlq: str, queue: str) -> int:
        put_back = 0
        while messages := self._sqs.receive_message(
            QueueUrl=dlq, MaxNumberOfMessages=10, VisibilityTimeout=30, MessageAttributeNames=["All"]
        ).get("Messages", []):
            for message in messages:
                attributes = message.get("MessageAttributes", {})
                if "reason" in attributes:
                    continue
                before = int(attributes.get(RECEIVED_BEFORE, {}).get("StringValue", 0))
                counted = {"DataType": "Number", "StringValue": str(before + self._receives)}
                self._sqs.send_message(
                    QueueUrl=queue,
                    MessageBody=message["Body"],
                    MessageAttributes=attributes | {RECEIVED_BEFORE: counted},
                )
                self._sqs.delete_message(QueueUrl=dlq, ReceiptHandle=message["ReceiptHandle"])
                put_back += 1
        return put_back
