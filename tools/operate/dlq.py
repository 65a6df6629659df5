"""The contents of the DLQs: which messages are parked, why, and since when. Reading changes nothing."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from tools.operate.deployment import RELAY, Deployment
from tools.queues import Parked, depth, parse_parked, walk

LIMIT = 1000  # messages read in one DLQ; reading hides them for a moment


@dataclass(frozen=True)
class DlqContents:
    """The contents of one DLQ. `total` is SQS's approximate count. `complete`: all messages were read."""

    queue: str
    total: int
    complete: bool
    messages: list[Parked]

    @property
    def by_reason(self) -> dict[str, int]:
        """The number of messages by reason, most frequent first."""
        return dict(Counter(message.reason for message in self.messages).most_common())

    @property
    def is_empty(self) -> bool:
        """No message was read, and SQS counts none."""
        return not self.messages and not self.total

    @property
    def report(self) -> dict[str, Any]:
        """The contents as JSON values."""
        return {
            "queue": self.queue,
            "parked": self.total,
            "looked_at": len(self.messages),
            "complete": self.complete,
            "by_reason": self.by_reason,
            "messages": [asdict(message) for message in self.messages],
        }


def look(deployment: Deployment, queue: str, limit: int = LIMIT) -> DlqContents:
    """Read the DLQ of a queue, at most `limit` messages."""
    sqs, url = deployment.client("sqs"), deployment.dlq_url(queue)
    total = depth(sqs, url).total
    with walk(sqs, url) as walking:
        messages = [parse_parked(message) for message in walking.messages(limit)]
    return DlqContents(queue, max(total, len(messages)), walking.complete, messages)


def look_everywhere(deployment: Deployment, limit: int = LIMIT) -> list[DlqContents]:
    """Read all DLQs at the same time: an empty one takes a second."""
    deployment.client("sqs")  # made before the threads start: a boto3 session is not thread-safe
    deployment.dlq_url(RELAY)
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda queue: look(deployment, queue, limit), (*deployment.queues, RELAY)))
