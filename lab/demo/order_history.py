"""The history of an order in a variant, from observation, journal and fault table. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lab.demo.kills import Kill
from lab.demo.sender import SentMessage
from lab.faults.fault_table import InjectedFault
from lab.faults.journal import Delivery
from lab.faults.plan import Kind
from lab.variants.observation import Observation

DEADLY = (Kind.DIE_BEFORE, Kind.DIE_AFTER)
SAYS = {
    Kind.DIE_BEFORE: "the worker is killed before its call {call} is sent",
    Kind.DIE_AFTER: "the worker is killed as soon as call {call} is answered",
    Kind.ANSWER_LOST: "the answer to call {call} is lost",
    Kind.THROTTLED: "call {call} is throttled",
    Kind.SLOW: "call {call} takes as long as the client's timeout",
    Kind.ERROR_BEFORE: "call {call} fails with a 5xx and has no effect",
    Kind.ERROR_AFTER: "call {call} has its effect and fails with a 5xx",
    Kind.STALLED: "the worker stalls past its lease at call {call}, then continues",
}


@dataclass(frozen=True)
class History:
    """All data about a variant. `kills` are kills of its workers from outside."""

    observation: Observation
    deliveries: Sequence[Delivery] = ()
    faults: Sequence[InjectedFault] = ()
    kills: Sequence[Kill] = ()
    sends: Sequence[SentMessage] = ()
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
        """Time and cause of the death of its worker, if the worker died before the delivery ended."""
        if delivery.ended_at_ms is not None:
            return None
        return self._deaths.get(delivery.pid)

    @property
    def died(self) -> list[Delivery]:
        """Deliveries whose worker died before they ended."""
        return [each for each in self.deliveries if self.death_of(each)]

    @property
    def dead_workers(self) -> int:
        """The number of workers killed by faults or from outside."""
        return len(self._deaths)


@dataclass(frozen=True)
class Moment:
    """An entry of the history. `at_ms` is in epoch milliseconds; None is the state at the end."""

    at_ms: int | None
    kind: str  # sent, delivery, takeover, fault, death, effect, record, end
    who: str
    what: str


def order_history(order_id: str, address: str, history: History) -> list[Moment]:
    """All arrivals, deliveries, faults, deaths, takeovers, effects and records of an order, by time."""
    moments = [*_sent(order_id, history), *_worked(order_id, history), *_effects(order_id, address, history)]
    row = next((row for row in history.observation.orders if row["order_id"] == order_id), None)
    moments += _recorded(row or {})
    moments.sort(
        key=lambda moment: (moment.at_ms or 0, moment.kind == "death")
    )  # a fault before the death that it causes
    says = f"{row.get('state')}{', emailed' if 'mailed_at' in row else ', not emailed'}" if row else "no order row"
    where = [
        f"; a message is {what}"
        for what, those in (("still on its way", history.observation.waiting), ("in a DLQ", history.observation.parked))
        if order_id in those
    ]
    return [*moments, Moment(None, "end", "order row", says + "".join(where))]


def _sent(order_id: str, history: History) -> Iterator[Moment]:
    sends = [each for each in history.sends if each.order_id == order_id]
    for number, each in enumerate(sends, start=1):
        yield Moment(each.at_ms, "sent", "client", f"sends it, {number} of {len(sends)}, {each.how}")


def _worked(order_id: str, history: History) -> Iterator[Moment]:
    earlier: list[Delivery] = []
    for delivery in sorted(
        (each for each in history.deliveries if each.order == order_id), key=lambda each: each.at_ms
    ):
        who, worker = delivery.function, f"worker {delivery.pid}"
        gets = f"{worker} gets message {delivery.message[:8]}, receive {delivery.receive}"
        done = any(_is_done(each, delivery) for each in earlier)
        over = (
            None if done else next((each for each in reversed(earlier) if _takes_over(delivery, each, history)), None)
        )
        if over is None:
            yield Moment(delivery.at_ms, "delivery", who, gets)
        else:
            yield Moment(delivery.at_ms, "takeover", who, f"{gets}; worker {over.pid} did not finish")
        death = history.death_of(delivery)
        if death and delivery.pid not in {each.pid for each in earlier if history.death_of(each)}:
            yield Moment(max(death[0], delivery.at_ms), "death", who, f"{worker} is dead: {death[1]}")
        if delivery.ended_at_ms is not None:
            how = "fails; SQS will deliver the message again" if delivery.failed else "ends with success"
            yield Moment(delivery.ended_at_ms, "delivery", who, f"{worker} {how}")
        earlier.append(delivery)
    for fault in history.faults:
        if fault.order == order_id:
            yield Moment(fault.at_ms, "fault", fault.function, SAYS[fault.kind].format(call=fault.call))


def _is_done(earlier: Delivery, before: Delivery) -> bool:
    """Whether the step succeeded before: a later delivery is a copy and takes nothing over."""
    same = earlier.function == before.function and not earlier.failed
    return same and earlier.ended_at_ms is not None and earlier.ended_at_ms <= before.at_ms


def _takes_over(delivery: Delivery, earlier: Delivery, history: History) -> bool:
    """Whether the earlier worker is dead, or still has the same message."""
    if earlier.function != delivery.function:
        return False
    death = history.death_of(earlier)
    if death:
        return death[0] <= delivery.at_ms
    is_running = earlier.ended_at_ms is None or earlier.ended_at_ms > delivery.at_ms
    return is_running and earlier.message == delivery.message


def _effects(order_id: str, address: str, history: History) -> Iterator[Moment]:
    for charge in history.observation.charges:
        if charge["metadata"].get("order_id") == order_id:
            paid = "charged" if charge["status"] == "succeeded" else "declined"
            amount = f"{charge['amount'] / 100:.2f} {charge['currency'].upper()}"
            yield Moment(_charged_at(charge, order_id, history), "effect", "ledger", f"{amount} {paid}, {charge['id']}")
    for mail in history.observation.mails:
        if address in mail.to:
            yield Moment(mail.at_ms, "effect", "mailbox", f"“{mail.subject}”")


def _charged_at(charge: Mapping[str, Any], order_id: str, history: History) -> int:
    """The time of a charge. The ledger has seconds only: within the second, the charge follows the delivery."""
    second = int(charge["created"]) * 1000
    taken = [
        each.at_ms
        for each in history.deliveries
        if each.order == order_id and each.function == "payment" and second <= each.at_ms < second + 1000
    ]
    return max(taken) + 1 if taken else second


def _recorded(row: Mapping[str, Any]) -> Iterator[Moment]:
    """The times in an order row. Other variants store the time of the email only."""
    for name, at in row.items():
        if name.endswith("_at"):
            yield Moment(_ms(at), "record", "order row", name.removesuffix("_at"))


def _ms(iso: str) -> int:
    return int(datetime.fromisoformat(iso).timestamp() * 1000)
