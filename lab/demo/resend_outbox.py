"""Send the events of completed records again, as a relay does that died before it stored its position."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tools.local.local_deployment import LocalDeployment
from tools.local.observe import Queues, Tables

QUEUE_OF = {
    "order.requested": "Orders",
    "order.placed": "Payments",
    "order.paid": "Emails",
    "order.declined": "Emails",
}
AT_ONCE = 6


def resend_outbox(running: LocalDeployment) -> int:
    """Send each event of all completed records. Returns the number of events."""
    queues = Queues(running)
    outboxes = [
        json.loads(record["outbox"])
        for record in Tables(running).records()
        if record["status"] == "COMPLETED" and record.get("outbox")
    ]
    events = [entry["event"] for outbox in outboxes for entry in outbox]

    def send(event: dict[str, Any]) -> None:
        queues.send(QUEUE_OF[event["type"]], json.dumps(event))

    with ThreadPoolExecutor(AT_ONCE) as at_once:
        list(at_once.map(send, events))
    return len(events)
