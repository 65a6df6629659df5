"""Find why an order got a second email: the cause of the unknown outcome of a send. Pure."""

from collections.abc import Iterator
from itertools import pairwise

from lab.demo.order_history import History
from lab.faults.journal import Delivery
from lab.faults.plan import Kind

# Faults that hide the outcome of a call from the worker without killing it.
UNANSWERED = (Kind.ANSWER_LOST, Kind.ERROR_AFTER, Kind.SLOW, Kind.STALLED)
LATE_MS = 5_000  # a fault is recorded before it is applied: the send may happen this much later


def why_mailed_again(order_id: str, address: str, history: History) -> str:
    """The causes of all emails after the first. Empty if the cause of one is unknown."""
    mailed = sorted(mail.at_ms for mail in history.observation.mails if address in mail.to)
    deliveries = [each for each in history.deliveries if (each.order, each.function) == (order_id, "email")]
    reasons = [_why(before, after, deliveries, history) for before, after in pairwise(mailed)]
    return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""


def _why(before_ms: int, after_ms: int, deliveries: list[Delivery], history: History) -> str:
    holders = [each for each in deliveries if each.at_ms <= before_ms <= _until(each, history)]
    zombies = [each for each in deliveries if each not in holders and each.at_ms <= after_ms]
    reasons = [*(reason for each in holders for reason in _reasons(each, history)), *_stalls(zombies, history)]
    return reasons[0] if reasons else ""


def _until(delivery: Delivery, history: History) -> float:
    death = history.death_of(delivery)
    if death:
        return death[0] + LATE_MS
    return float("inf") if delivery.ended_at_ms is None else delivery.ended_at_ms


def _reasons(delivery: Delivery, history: History) -> Iterator[str]:
    """Causes, the most certain first."""
    if death := history.death_of(delivery):
        yield f"worker {delivery.pid} died: {death[1]}"
    for fault in history.faults:
        same = (fault.order, fault.function, fault.pid) == (delivery.order, delivery.function, delivery.pid)
        if same and fault.kind in UNANSWERED and delivery.at_ms <= fault.at_ms <= _until(delivery, history):
            yield f"{fault.kind.value} at call {fault.call} of email"
    if delivery.ended_at_ms is None:
        yield f"worker {delivery.pid} never ended"
    elif delivery.failed:
        yield f"worker {delivery.pid} got no answer in time and returned the message"


def _stalls(deliveries: list[Delivery], history: History) -> Iterator[str]:
    """Stalled workers that sent an email after a takeover."""
    for delivery in deliveries:
        for fault in history.faults:
            same = (fault.order, fault.function, fault.pid) == (delivery.order, "email", delivery.pid)
            if same and fault.kind is Kind.STALLED:
                yield f"stalled at call {fault.call} of email"
