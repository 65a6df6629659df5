"""Replays dead-letter queues, as an operator does: everything back to where it came from, under new message ids."""

import threading
from collections.abc import Iterable

from tools.local.observe import QUEUES
from tools.local.running import Running

from lab.demo.lanes import Lane
from lab.faults.strands import RECEIVED_BEFORE

EVERY_S = 1.0


class Replayer:
    """Counts, by lane, the messages that it put back. Those that were refused for a reason stay: they need a person.

    `receives`: after so many a message was moved to its DLQ.
    """

    def __init__(self, running: Running, lanes: Iterable[Lane], receives: int) -> None:
        self._receives = receives
        self._sqs = running.client("sqs")
        self._outputs = {lane.name: lane.of(running).outputs for lane in lanes}
        self.replayed = dict.fromkeys(self._outputs, 0)

    def run(self, stop: threading.Event) -> None:
        """Replay until `stop` is set."""
        while not stop.wait(EVERY_S):
            self.once()

    def once(self) -> None:
        for lane, outputs in self._outputs.items():
            for name in QUEUES:
                self.replayed[lane] += self._replay(outputs[f"{name}DlqUrl"], outputs[f"{name}QueueUrl"])

    def _replay(self, dlq: str, queue: str) -> int:
        put_back = 0
        while found := self._sqs.receive_message(
            QueueUrl=dlq, MaxNumberOfMessages=10, VisibilityTimeout=30, MessageAttributeNames=["All"]
        ).get("Messages", []):
            for message in found:
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
