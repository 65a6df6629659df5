"""A queue as SQS keeps it: visible messages, those in flight, and those that wait for their visibility to end."""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy


@dataclass(eq=False, slots=True)
class Message:
    order: int
    receives: int = 0


class Queue:
    """Messages in flight are those received and not deleted, also while they wait out a back-off.

    At `in_flight_limit` nothing more is received until one comes back or is deleted.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
    """

    def __init__(self, env: simpy.Environment, in_flight_limit: int) -> None:
        self.visible: deque[Message] = deque()
        self.in_flight = 0
        self.most_in_flight = 0
        self.parked: list[Message] = []
        self._env = env
        self._limit = in_flight_limit
        self._idle: deque[simpy.Event] = deque()

    @property
    def backlog(self) -> int:
        """All that is on the queue."""
        return len(self.visible) + self.in_flight

    @property
    def receivable(self) -> int:
        return min(len(self.visible), self._limit - self.in_flight)

    def send(self, message: Message) -> None:
        self.visible.append(message)
        self._wake()

    def waiting(self) -> simpy.Event:
        """Happens when there is something to receive; perhaps somebody else was faster."""
        event = self._env.event()
        self._idle.append(event)
        return event

    def receive(self, most: int) -> list[Message]:
        taken = [self.visible.popleft() for _ in range(min(most, self.receivable))]
        for message in taken:
            message.receives += 1
        self.in_flight += len(taken)
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return taken

    def delete(self, _: Message) -> None:
        self.in_flight -= 1
        self._wake()

    def hide(self, message: Message, seconds: float) -> None:
        """It comes back then."""
        self._env.process(self._back(message, seconds))

    def _back(self, message: Message, seconds: float) -> Generator[simpy.Event, Any, None]:
        yield self._env.timeout(seconds)
        self.in_flight -= 1
        self.send(message)

    def park(self, message: Message) -> None:
        """Received too often: SQS moves it to the DLQ."""
        self.in_flight -= 1
        self.parked.append(message)
        self._wake()

    def _wake(self) -> None:
        if self._idle and self.receivable > 0:
            self._idle.popleft().succeed()
