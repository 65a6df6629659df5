"""What is parked, why, and since when: a look into each DLQ that changes nothing."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tools.operate.deployment import RELAY, Deployment
from tools.operate.parked import Parked, depth, read, visit

MOST = 1000  # messages looked at in one DLQ: more say little, and each look hides them for a moment


@dataclass(frozen=True)
class Letters:
    """What lies in one DLQ. `total` is SQS's own count, roughly; `whole`: all of them were looked at."""

    queue: str
    total: int
    whole: bool
    messages: list[Parked]

    @property
    def by_reason(self) -> dict[str, int]:
        """Of those looked at, the most frequent first."""
        return dict(Counter(message.reason for message in self.messages).most_common())

    @property
    def is_empty(self) -> bool:
        """Nothing was seen, and SQS counts nothing."""
        return not self.messages and not self.total


def look(deployment: Deployment, queue: str, most: int = MOST) -> Letters:
    """Look into the DLQ of a queue, at `most` messages at most."""
    sqs, url = deployment.client("sqs"), deployment.dlq_url(queue)
    counted = depth(sqs, url)
    with visit(sqs, url) as walk:
        messages = [read(message) for message in walk.messages(most)]
    return Letters(queue, max(sum(counted.values()), len(messages)), walk.whole, messages)


def look_everywhere(deployment: Deployment, most: int = MOST) -> list[Letters]:
    """Look into every DLQ, at all of them at once: an empty one takes a second."""
    deployment.client("sqs")  # made once, before the threads: a session is not for several
    deployment.dlq_url(RELAY)
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda queue: look(deployment, queue, most), (*deployment.queues, RELAY)))


def report(deployment: Deployment, found: list[Letters]) -> dict[str, Any]:
    """Machine-readable."""
    return {
        "stage": deployment.stage,
        "queues": [
            {
                "queue": letters.queue,
                "parked": letters.total,
                "looked_at": len(letters.messages),
                "complete": letters.whole,
                "by_reason": letters.by_reason,
                "messages": [
                    {name: getattr(message, name) for name in Parked.__dataclass_fields__}
                    for message in letters.messages
                ],
            }
            for letters in found
        ],
    }
