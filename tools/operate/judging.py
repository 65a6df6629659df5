"""What is wrong with one order. Pure: from its row, its records and its charges to findings."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.idempotency import Image, outbox, text
from shared.idempotency.events import UNREADABLE
from shared.idempotency.records import COMPLETED, INPROGRESS, flag, number
from shared.orders.row import DECLINED, PAID, PLACED, REQUESTED, Order
from tools.operate.ledger import Charge
from tools.operate.tables import Records

# What each kind means to a person. Those in NOTES are to be known, not to be mended.
KINDS = {
    "late": "not final, and has not moved for longer than the age",
    "event_missing": "late, and no trace of its event at the next step",
    "parked": "a message lies in a DLQ",
    "paid_twice": "more than one charge stands",
    "charged_not_recorded": "a charge stands that the order row does not know",
    "paid_without_charge": "the row says paid, the provider has no charge",
    "wrong_amount": "the charge is not what the order costs",
    "effect_without_state": "the effect happened, its state was refused or never committed",
    "record_without_state": "a record is completed, the row shows nothing of it",
    "unsettled_record": "the row has moved on, the record of that step is still in progress",
    "damaged_record": "a record that this code does not write",
    "damaged_row": "an order row that can not be read",
    "damaged_outbox": "events of a record that can not be read",
    "possibly_mailed_twice": "an earlier try to mail ended unknown, so it was sent once more",
    "record_missing": "a record is gone before its time; the row guards the order",
}
NOTES = frozenset({"possibly_mailed_twice", "record_missing"})

# The step that an order of this state waits for, and the queue in front of it.
NEXT = {
    REQUESTED: ("order.place", "orders"),
    PLACED: ("payment.charge", "payments"),
    PAID: ("email.send", "emails"),
    DECLINED: ("email.send", "emails"),
}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something to look at. `resend`: sending the order's event again may help, and never hurts."""

    kind: str
    order_id: str  # empty where none is known
    detail: str
    resend: bool = False

    @property
    def is_wrong(self) -> bool:
        """It needs mending; else it is a note."""
        return self.kind not in NOTES


@dataclass(frozen=True, slots=True)
class Rules:
    """By what is judged. `age_s`: younger facts may still be on their way; `ttl_s`: how long a record lives."""

    now_ms: int
    age_s: int
    ttl_s: int

    def is_old(self, at: str) -> bool:
        """Whether this time (RFC 3339) is longer ago than the age."""
        return self.seconds_since(at) >= self.age_s

    def seconds_since(self, at: str) -> float:
        """From a time (RFC 3339) until now."""
        return self.now_ms / 1000 - datetime.fromisoformat(at).timestamp()

    def is_alive(self, image: Image | None) -> bool:
        """Whether there is a record, and it has not expired: TTL deletes late, and a forgotten claim is past."""
        return image is not None and (number(image, "expiration") or 0) * 1000 > self.now_ms

    def has_lapsed(self, image: Image) -> bool:
        """In progress, with a lease that ended longer ago than the age."""
        until_ms = number(image, "in_progress_expiration")
        old = until_ms is not None and until_ms + self.age_s * 1000 <= self.now_ms
        return text(image, "status") == INPROGRESS and old


def judge(
    rules: Rules,
    order_id: str,
    order: Order | None,
    records: Records,
    charges: Sequence[Charge],
    parked_in: Collection[str],
) -> list[Finding]:
    """All that is to be said of one order. `parked_in`: the queues in whose DLQ a message of it lies, told apart."""
    if order is not None and (damage := _damage_of_row(order)):
        return [Finding("damaged_row", order_id, damage)]
    alive = {operation: image for operation, image in records.items() if rules.is_alive(image)}
    found = [*_of_records(rules, order_id, alive, parked_in), *_of_charges(rules, order_id, order, charges)]
    if order is None:
        found += [
            Finding("record_without_state", order_id, f"{operation} is done, and there is no such order")
            for operation, image in alive.items()
            if text(image, "status") == COMPLETED
        ]
        return found
    return [*found, *_of_the_way(rules, order, records, alive, parked_in), *_of_the_past(rules, order, alive)]


def _damage_of_row(order: Order) -> str | None:
    """A state that there is not, or a time that is missing or none."""
    reached = {REQUESTED: order.requested_at, PLACED: order.placed_at, PAID: order.paid_at, DECLINED: order.declined_at}
    if order.state not in reached or not reached[order.state]:
        return f"state {order.state} without its time"
    try:
        for move in order.timeline:
            datetime.fromisoformat(move["at"])
    except ValueError:
        return "a time that is none"
    return None


def _of_records(rules: Rules, order_id: str, alive: Records, parked_in: Collection[str]) -> Iterator[Finding]:
    queues = dict(NEXT.values())
    for operation, image in alive.items():
        if damage := _damage(image):
            yield Finding("damaged_record", order_id, f"{operation} {damage}")
        elif rules.has_lapsed(image) and text(image, "effect"):
            said = f"{operation} noted its effect and did not commit"
            resend = queues.get(operation) not in parked_in  # else it would only be parked once more
            yield Finding("effect_without_state", order_id, said, resend)
        if events := text(image, "outbox"):
            try:
                outbox.unpack(events)
            except UNREADABLE:
                yield Finding("damaged_outbox", order_id, operation, True)
    mail = alive.get("email.send", {})
    if text(mail, "status") == COMPLETED and flag(mail, "uncertain"):
        yield Finding("possibly_mailed_twice", order_id, f"after {number(mail, 'attempt')} tries")


def _damage(image: Image) -> str | None:
    """The same that the core calls damaged when it meets it."""
    status = text(image, "status")
    if text(image, "validation") is None:
        return "has no fingerprint"
    if status not in (COMPLETED, INPROGRESS):
        return f"has status {status}"
    if status == COMPLETED and text(image, "data") is None:
        return "is completed without a result"
    if status == INPROGRESS and number(image, "in_progress_expiration") is None:
        return "is in progress without a lease"
    return None


def _of_charges(rules: Rules, order_id: str, order: Order | None, charges: Sequence[Charge]) -> Iterator[Finding]:
    standing = [charge for charge in charges if charge.stands]
    if len(standing) > 1:
        yield Finding("paid_twice", order_id, ", ".join(charge.id for charge in standing))
    paid = order is not None and order.state == PAID
    for charge in standing:
        known = order is not None and paid and order.intent_id == charge.intent_id
        if not known and rules.is_old(charge.at):
            state = order.state if order else "missing"
            yield Finding("charged_not_recorded", order_id, f"{charge.id} of {charge.intent_id}, the order is {state}")
        if order is not None and (charge.amount, charge.currency) != (order.total, order.currency):
            says = f"{charge.id} is {charge.amount} {charge.currency}, ordered {order.total} {order.currency}"
            yield Finding("wrong_amount", order_id, says)
    charged = any(charge.status == "succeeded" for charge in charges)
    if order is not None and paid and not charged and rules.is_old(order.paid_at or ""):
        yield Finding("paid_without_charge", order_id, f"by {order.intent_id}")


def _of_the_way(
    rules: Rules, order: Order, records: Records, alive: Records, parked_in: Collection[str]
) -> Iterator[Finding]:
    """Of the step that an unfinished order waits for."""
    if order.next_event is None:
        return
    (operation, queue), moved_at = NEXT[order.state], order.timeline[-1]["at"]
    image = alive.get(operation)
    if image is not None and _damage(image):
        return  # which is said; its event would only be parked
    if image is not None and text(image, "status") == COMPLETED:
        yield Finding("record_without_state", order.order_id, f"{operation} is done, the order is {order.state}")
        return
    if not rules.is_old(moved_at):
        return
    stands = f"{order.state} since {moved_at}"
    if queue in parked_in:
        yield Finding("late", order.order_id, f"{stands}, its message is parked")
    elif operation not in records:
        yield Finding("event_missing", order.order_id, f"{stands}, no sign of {operation}", True)
    else:
        tries = number(records[operation], "attempt")
        yield Finding("late", order.order_id, f"{stands}, {operation} was tried {tries} times", True)


def _of_the_past(rules: Rules, order: Order, alive: Records) -> Iterator[Finding]:
    """Of the steps that the row says are done."""
    done = {
        "order.request": order.requested_at,
        "order.place": order.placed_at,
        "payment.charge": order.paid_at or order.declined_at,
        "email.send": order.mailed_at,
    }
    past = {operation: at for operation, at in done.items() if at}
    gone = [name for name, at in past.items() if name not in alive and rules.seconds_since(at) < rules.ttl_s]
    if gone:
        yield Finding("record_missing", order.order_id, ", ".join(gone))
    for operation in past:
        if (image := alive.get(operation)) and rules.has_lapsed(image):
            yield Finding("unsettled_record", order.order_id, f"{operation}, attempt {number(image, 'attempt')}")
