"""What is wrong with one order: pure functions from its row, its records and its charges to a list of findings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.idempotency import Image, text, unpack
from shared.idempotency.events import UNREADABLE
from shared.idempotency.records import COMPLETED, INPROGRESS, flag, number

from .row import DECLINED, PAID, PLACED, REQUESTED, Order

# The operations of an order, in the order in which they run. A record's key is `<operation>#<order id>`.
OPERATIONS = ("order.request", "order.place", "payment.charge", "email.send")

# The next operation of an unfinished order, by its state, and the queue in front of that operation.
NEXT = {
    REQUESTED: ("order.place", "orders"),
    PLACED: ("payment.charge", "payments"),
    PAID: ("email.send", "emails"),
    DECLINED: ("email.send", "emails"),
}

# The kinds of findings, and what each means to a person. A note needs no repair.
KINDS = {
    "late": "not final, and has not moved for longer than the age",
    "event_missing": "late, and no trace of its event at the next step",
    "parked": "a message is in a DLQ",
    "paid_twice": "more than one charge stands",
    "charged_not_recorded": "the order row does not know this charge",
    "paid_without_charge": "the row is paid, and the provider has no charge",
    "wrong_amount": "the charge differs from the order's total",
    "effect_without_state": "the effect happened, and its state was refused or never committed",
    "record_without_state": "a record is completed, and the row does not show its state",
    "unsettled_record": "the row has moved on, and the record of that step is still in progress",
    "damaged_record": "this code cannot have written the record",
    "damaged_row": "the order row cannot be read",
    "damaged_outbox": "the events of a record cannot be read",
    "possibly_mailed_twice": "the outcome of a send was unknown, so the email was sent once more",
    "record_missing": "a record was deleted before its expiry; the row protects the order",
}
NOTES = frozenset({"possibly_mailed_twice", "record_missing"})

Records = Mapping[str, Image]  # by operation


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge that the provider executed. `amount` is in minor units, `currency` upper case, `at` RFC 3339."""

    id: str
    intent_id: str
    status: str
    amount: int
    currency: str
    refunded: bool
    at: str

    @property
    def stands(self) -> bool:
        """The customer has paid and was not refunded."""
        return self.status == "succeeded" and not self.refunded


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something to look at. `resend`: sending the order's pending event again may help, and is always safe."""

    kind: str
    order_id: str  # empty if unknown
    detail: str
    resend: bool = False

    @property
    def is_wrong(self) -> bool:
        """The finding needs a repair. Otherwise it is a note."""
        return self.kind not in NOTES


@dataclass(frozen=True, slots=True)
class Rules:
    """Time limits. `age_s`: younger facts may still be on their way. `ttl_s`: the lifetime of a record."""

    now_ms: int
    age_s: int
    ttl_s: int

    def is_old(self, at: str) -> bool:
        """Return whether this time (RFC 3339) is at least `age_s` ago."""
        return self.seconds_since(at) >= self.age_s

    def seconds_since(self, at: str) -> float:
        """Return the seconds from a time (RFC 3339) until now."""
        return self.now_ms / 1000 - datetime.fromisoformat(at).timestamp()

    def is_alive(self, image: Image | None) -> bool:
        """Return whether the record exists and has not expired. TTL deletes late, and a released claim is expired."""
        return image is not None and (number(image, "expiration") or 0) * 1000 > self.now_ms

    def has_lapsed(self, image: Image) -> bool:
        """Return whether the record is in progress with a lease that ended at least `age_s` ago."""
        until_ms = number(image, "in_progress_expiration")
        is_old = until_ms is not None and until_ms + self.age_s * 1000 <= self.now_ms
        return text(image, "status") == INPROGRESS and is_old


def check_order(
    rules: Rules,
    order_id: str,
    order: Order | None,
    records: Records,
    charges: Sequence[Charge],
    parked_in: Collection[str],
) -> list[Finding]:
    """Return all findings about one order, except parked messages. `parked_in`: the queues whose DLQ has one of it."""
    if order is not None and (damage := _row_damage(order)):
        return [Finding("damaged_row", order_id, damage)]
    alive = {operation: image for operation, image in records.items() if rules.is_alive(image)}
    findings = [*_check_records(rules, order_id, alive, parked_in), *_check_charges(rules, order_id, order, charges)]
    if order is None:
        return findings + [
            Finding("record_without_state", order_id, f"{operation} is done, and there is no such order")
            for operation, image in alive.items()
            if text(image, "status") == COMPLETED
        ]
    findings += _check_next_step(rules, order, records, alive, parked_in)
    findings += _check_past_steps(rules, order, alive)
    return findings


def _row_damage(order: Order) -> str | None:
    reached = {REQUESTED: order.requested_at, PLACED: order.placed_at, PAID: order.paid_at, DECLINED: order.declined_at}
    if order.state not in reached or not reached[order.state]:
        return f"state {order.state} without its time"
    try:
        for move in order.timeline:
            datetime.fromisoformat(move["at"])
    except ValueError:
        return "a time is not in RFC 3339"
    return None


def _check_records(rules: Rules, order_id: str, alive: Records, parked_in: Collection[str]) -> Iterator[Finding]:
    queues = dict(NEXT.values())
    for operation, image in alive.items():
        if damage := _record_damage(image):
            yield Finding("damaged_record", order_id, f"{operation} {damage}")
        elif rules.has_lapsed(image) and text(image, "effect"):
            detail = f"{operation} saved its result and did not commit"
            resend = queues.get(operation) not in parked_in  # otherwise it would only be parked again
            yield Finding("effect_without_state", order_id, detail, resend)
        if events := text(image, "outbox"):
            try:
                unpack(events)
            except UNREADABLE:
                yield Finding("damaged_outbox", order_id, operation, True)
    email = alive.get("email.send", {})
    if text(email, "status") == COMPLETED and flag(email, "uncertain"):
        yield Finding("possibly_mailed_twice", order_id, f"after {number(email, 'attempt')} attempts")


def _record_damage(image: Image) -> str | None:
    """Return what the engine calls damaged when it meets this record."""
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


def _check_charges(rules: Rules, order_id: str, order: Order | None, charges: Sequence[Charge]) -> Iterator[Finding]:
    standing = [charge for charge in charges if charge.stands]
    if len(standing) > 1:
        yield Finding("paid_twice", order_id, ", ".join(charge.id for charge in standing))
    is_paid = order is not None and order.state == PAID
    for charge in standing:
        is_known = order is not None and is_paid and order.intent_id == charge.intent_id
        if not is_known and rules.is_old(charge.at):
            state = order.state if order else "missing"
            yield Finding("charged_not_recorded", order_id, f"{charge.id} of {charge.intent_id}, the order is {state}")
        if order is not None and (charge.amount, charge.currency) != (order.total, order.currency):
            detail = f"{charge.id} is {charge.amount} {charge.currency}, ordered {order.total} {order.currency}"
            yield Finding("wrong_amount", order_id, detail)
    is_charged = any(charge.status == "succeeded" for charge in charges)
    if order is not None and is_paid and not is_charged and rules.is_old(order.paid_at or ""):
        yield Finding("paid_without_charge", order_id, f"by {order.intent_id}")


def _check_next_step(
    rules: Rules, order: Order, records: Records, alive: Records, parked_in: Collection[str]
) -> Iterator[Finding]:
    if order.next_event is None:
        return
    (operation, queue), moved_at = NEXT[order.state], order.timeline[-1]["at"]
    image = alive.get(operation)
    if image is not None and _record_damage(image):
        return  # a finding already; the event would only be parked
    if image is not None and text(image, "status") == COMPLETED:
        yield Finding("record_without_state", order.order_id, f"{operation} is done, the order is {order.state}")
        return
    if not rules.is_old(moved_at):
        return
    since = f"{order.state} since {moved_at}"
    if queue in parked_in:
        yield Finding("late", order.order_id, f"{since}, its message is parked")
    elif operation not in records:
        yield Finding("event_missing", order.order_id, f"{since}, no record of {operation}", True)
    else:
        attempts = number(records[operation], "attempt")
        yield Finding("late", order.order_id, f"{since}, {operation} had {attempts} attempts", True)


def _check_past_steps(rules: Rules, order: Order, alive: Records) -> Iterator[Finding]:
    done_at = {
        "order.request": order.requested_at,
        "order.place": order.placed_at,
        "payment.charge": order.paid_at or order.declined_at,
        "email.send": order.mailed_at,
    }
    past = {operation: at for operation, at in done_at.items() if at}
    gone = [name for name, at in past.items() if name not in alive and rules.seconds_since(at) < rules.ttl_s]
    if gone:
        yield Finding("record_missing", order.order_id, ", ".join(gone))
    for operation in past:
        if (image := alive.get(operation)) and rules.has_lapsed(image):
            yield Finding("unsettled_record", order.order_id, f"{operation}, attempt {number(image, 'attempt')}")
