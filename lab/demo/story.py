"""What happened to an order in a lane, put together from what the witnesses told. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lab.contrast.verdict import Witnessed
from lab.demo.kills import Kill
from lab.demo.sender import Sent
from lab.faults.arm import Injected
from lab.faults.journal import Delivery
from lab.faults.plan import Kind

DEADLY = (Kind.DIE_BEFORE, Kind.DIE_AFTER)
SAYS = {
    Kind.DIE_BEFORE: "the worker is killed before its call {call} is sent",
    Kind.DIE_AFTER: "the worker is killed as soon as call {call} is answered",
    Kind.ANSWER_LOST: "the answer to call {call} is lost",
    Kind.THROTTLED: "call {call} is throttled",
    Kind.SLOW: "call {call} is as slow as the client is patient",
    Kind.ERROR_BEFORE: "call {call} fails with a 5xx, nothing done",
    Kind.ERROR_AFTER: "call {call} is done, and answered with a 5xx",
    Kind.STALLED: "the worker stands still past its lease at call {call}, then goes on",
}


@dataclass(frozen=True)
class Told:
    """All that is known of a lane; `kills`: of its workers, from outside."""

    witnessed: Witnessed
    deliveries: Sequence[Delivery] = ()
    faults: Sequence[Injected] = ()
    kills: Sequence[Kill] = ()
    sends: Sequence[Sent] = ()
    _deaths: dict[int, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in self.faults:
            if fault.kind in DEADLY:
                call = f"call {fault.call} of {fault.function} for {fault.order}"
                self._deaths[fault.pid] = fault.at_ms, f"{fault.kind.value} at {call}"
        for kill in self.kills:
            for pid in kill.pids:
                self._deaths[pid] = kill.at_ms, "SIGKILL from outside"

    def death_of(self, delivery: Delivery) -> tuple[int, str] | None:
        """When and why its worker died with the message in its hand. A pid is used once in a run this short."""
        if delivery.ended_at_ms is not None:
            return None
        return self._deaths.get(delivery.pid)

    @property
    def died(self) -> list[Delivery]:
        """The deliveries that were cut short by the death of their worker."""
        return [each for each in self.deliveries if self.death_of(each)]

    @property
    def dead_workers(self) -> int:
        """Killed by faults, or from outside."""
        return len(self._deaths)


@dataclass(frozen=True)
class Moment:
    """`at_ms` is epoch milliseconds, None: as the witnesses found it in the end."""

    at_ms: int | None
    kind: str  # sent, delivery, takeover, fault, death, effect, record, end
    who: str
    what: str


def story(order_id: str, address: str, told: Told) -> list[Moment]:
    """Every sending, delivery, fault, death, takeover, effect and record of an order, in the order of time."""
    moments = [*_sent(order_id, told), *_worked(order_id, told), *_effects(order_id, address, told)]
    row = next((row for row in told.witnessed.orders if row["order_id"] == order_id), None)
    moments += _recorded(row or {})
    moments.sort(key=lambda moment: (moment.at_ms or 0, moment.kind == "death"))  # a fault first, then what it did
    says = f"{row.get('state')}{', mailed' if 'mailed_at' in row else ', not mailed'}" if row else "no such order"
    where = [
        f"; a message is {what}"
        for what, those in (("still on its way", told.witnessed.waiting), ("in a DLQ", told.witnessed.parked))
        if order_id in those
    ]
    return [*moments, Moment(None, "end", "order row", says + "".join(where))]


def _sent(order_id: str, told: Told) -> Iterator[Moment]:
    sends = [each for each in told.sends if each.order_id == order_id]
    for number, each in enumerate(sends, start=1):
        yield Moment(each.at_ms, "sent", "client", f"sends it, {number} of {len(sends)}, {each.how}")


def _worked(order_id: str, told: Told) -> Iterator[Moment]:
    earlier: list[Delivery] = []
    for delivery in sorted((each for each in told.deliveries if each.order == order_id), key=lambda each: each.at_ms):
        who, worker = delivery.function, f"worker {delivery.pid}"
        gets = f"{worker} gets message {delivery.message[:8]}, receive {delivery.receive}"
        done = any(_is_done(each, delivery) for each in earlier)
        over = None if done else next((each for each in reversed(earlier) if _takes_over(delivery, each, told)), None)
        if over is None:
            yield Moment(delivery.at_ms, "delivery", who, gets)
        else:
            yield Moment(delivery.at_ms, "takeover", who, f"{gets}; worker {over.pid} did not finish")
        death = told.death_of(delivery)
        if death and delivery.pid not in {each.pid for each in earlier if told.death_of(each)}:
            yield Moment(max(death[0], delivery.at_ms), "death", who, f"{worker} is dead: {death[1]}")
        if delivery.ended_at_ms is not None:
            how = "fails; the message comes back" if delivery.failed else "is done with it"
            yield Moment(delivery.ended_at_ms, "delivery", who, f"{worker} {how}")
        earlier.append(delivery)
    for fault in told.faults:
        if fault.order == order_id:
            yield Moment(fault.at_ms, "fault", fault.function, SAYS[fault.kind].format(call=fault.call))


def _is_done(earlier: Delivery, before: Delivery) -> bool:
    """Whether the step had ended well by then: what comes after is a copy, and takes nothing over."""
    same = earlier.function == before.function and not earlier.failed
    return same and earlier.ended_at_ms is not None and earlier.ended_at_ms <= before.at_ms


def _takes_over(delivery: Delivery, earlier: Delivery, told: Told) -> bool:
    """From a worker that is dead by now, or had the same message and was not done with it."""
    if earlier.function != delivery.function:
        return False
    death = told.death_of(earlier)
    if death:
        return death[0] <= delivery.at_ms
    is_running = earlier.ended_at_ms is None or earlier.ended_at_ms > delivery.at_ms
    return is_running and earlier.message == delivery.message


def _effects(order_id: str, address: str, told: Told) -> Iterator[Moment]:
    for charge in told.witnessed.charges:
        if charge["metadata"].get("order_id") == order_id:
            paid = "charged" if charge["status"] == "succeeded" else "declined"
            amount = f"{charge['amount'] / 100:.2f} {charge['currency'].upper()}"
            yield Moment(_charged_at(charge, order_id, told), "effect", "ledger", f"{amount} {paid}, {charge['id']}")
    for mail in told.witnessed.mails:
        if address in mail.to:
            yield Moment(mail.at_ms, "effect", "mailbox", f"“{mail.subject}”")


def _charged_at(charge: Mapping[str, Any], order_id: str, told: Told) -> int:
    """The ledger knows the second only; within it, the charge came after the message was in a worker's hand."""
    second = int(charge["created"]) * 1000
    taken = [
        each.at_ms
        for each in told.deliveries
        if each.order == order_id and each.function == "payment" and second <= each.at_ms < second + 1000
    ]
    return max(taken) + 1 if taken else second


def _recorded(row: Mapping[str, Any]) -> Iterator[Moment]:
    """A row of ours keeps the times of all its states; the others' that of the mail only."""
    for name, at in row.items():
        if name.endswith("_at"):
            yield Moment(_ms(at), "record", "order row", name.removesuffix("_at"))


def _ms(iso: str) -> int:
    return int(datetime.fromisoformat(iso).timestamp() * 1000)
