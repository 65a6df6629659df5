"""Why an order was mailed again: what left the outcome of the send before unknown. Pure."""

from collections.abc import Iterator
from itertools import pairwise

from lab.demo.story import Told
from lab.faults.journal import Delivery
from lab.faults.plan import Kind

# What leaves a worker without an answer about its effect, without killing it.
UNANSWERED = (Kind.ANSWER_LOST, Kind.ERROR_AFTER, Kind.SLOW, Kind.STALLED)
LATE_MS = 5_000  # a fault is noted before it strikes: a send may be carried out this long after


def why_mailed_again(order_id: str, address: str, told: Told) -> str:
    """For each mail after the first, what befell the worker that had sent the one before; empty if nothing is known."""
    mailed = sorted(mail.at_ms for mail in told.witnessed.mails if address in mail.to)
    deliveries = [each for each in told.deliveries if (each.order, each.function) == (order_id, "email")]
    reasons = [_why(before, after, deliveries, told) for before, after in pairwise(mailed)]
    return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""


def _why(before_ms: int, after_ms: int, deliveries: list[Delivery], told: Told) -> str:
    held = [each for each in deliveries if each.at_ms <= before_ms <= _until(each, told)]
    zombies = [each for each in deliveries if each not in held and each.at_ms <= after_ms]
    reasons = [*(reason for each in held for reason in _reasons(each, told)), *_stalls(zombies, told)]
    return reasons[0] if reasons else ""


def _until(delivery: Delivery, told: Told) -> float:
    death = told.death_of(delivery)
    if death:
        return death[0] + LATE_MS
    return float("inf") if delivery.ended_at_ms is None else delivery.ended_at_ms


def _reasons(delivery: Delivery, told: Told) -> Iterator[str]:
    """The surest first."""
    if death := told.death_of(delivery):
        yield f"worker {delivery.pid} died: {death[1]}"
    for fault in told.faults:
        same = (fault.order, fault.function, fault.pid) == (delivery.order, delivery.function, delivery.pid)
        if same and fault.kind in UNANSWERED and delivery.at_ms <= fault.at_ms <= _until(delivery, told):
            yield f"{fault.kind.value} at call {fault.call} of email"
    if delivery.ended_at_ms is None:
        yield f"worker {delivery.pid} never ended"
    elif delivery.failed:
        yield f"worker {delivery.pid} had no answer in time, and gave the message back"


def _stalls(deliveries: list[Delivery], told: Told) -> Iterator[str]:
    """Of workers that were taken over and mailed after all."""
    for delivery in deliveries:
        for fault in told.faults:
            same = (fault.order, fault.function, fault.pid) == (delivery.order, "email", delivery.pid)
            if same and fault.kind is Kind.STALLED:
                yield f"stalled at call {fault.call} of email"
