"""Build the state of the page from a snapshot. Pure, except for the memory of suspected failures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tools.local.observe import QUEUES

from lab.console.sent_orders import SentOrder
from lab.console.snapshot import Snapshot, VariantSnapshot
from lab.demo.order_history import History, order_history
from lab.variants.outcomes import Outcomes, classify
from lab.variants.visibility import FUNCTION_OF

Plain = dict[str, Any]

# Between two steps an order is in no queue, and a charge is in no row. Only a longer state is a failure.
LASTING_MS = 10_000
TITLES = {"naive": "Naive", "this-repo": "This repository"}
ABOUT = {
    "naive": "a first version without protection",
    "this-repo": "claim, charge, commit: one record for each order",
}


class SuspicionTimer:
    """Remembers since when a failure is suspected. Only a lasting suspicion is shown."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, ...], int] = {}

    def lasting(self, now_ms: int, view: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """The suspicions that were in each snapshot for long enough."""
        self._since = {what: self._since.get(what, now_ms) for what in view}
        return {what for what, since in self._since.items() if now_ms - since >= LASTING_MS}


def page_state(snapshot: Snapshot, now_ms: int, suspicions: SuspicionTimer) -> Plain:
    """The state of the page as JSON, without histories."""
    outcomes_of = {
        view.variant: classify([view.variant.expected(entry.expected) for entry in snapshot.entries], view.observation)
        for view in snapshot.variants
    }
    lasting = suspicions.lasting(
        now_ms,
        (what for view in snapshot.variants for what in _suspect(view, outcomes_of[view.variant])),
    )
    cells = {view.variant: _cells(snapshot.entries, view, lasting) for view in snapshot.variants}
    return {
        "run": snapshot.run,
        "total": snapshot.total,
        "variants": [
            _variant(view, outcomes_of[view.variant], lasting, cells[view.variant].values())
            | {"armed": _armed(snapshot, view)}
            for view in snapshot.variants
        ],
        "orders": [
            {
                "id": entry.order_id,
                "number": entry.number,
                "copies": entry.copies,
                "amount": f"{entry.expected.amount / 100:.2f} {entry.expected.currency}",
                "variants": {variant.name: of[entry.order_id] for variant, of in cells.items()},
            }
            for entry in reversed(snapshot.entries)
        ],
    }


def changes(before: Plain | None, now: Plain) -> Plain | None:
    """The changes from `before` to `now`. None without changes."""
    if before is None:
        return {**now, "whole": True}
    known = {order["id"]: order for order in before["orders"]}
    orders = [order for order in now["orders"] if known.pop(order["id"], None) != order]
    change: Plain = {name: now[name] for name in ("variants", "total") if now[name] != before[name]}
    if orders:
        change["orders"] = orders
    if known:
        change["gone"] = list(known)
    return change or None


def timelines(snapshot: Snapshot, order_id: str) -> Plain | None:
    """The history of an order in each variant. None if the order is not known."""
    entry = next((entry for entry in snapshot.entries if entry.order_id == order_id), None)
    if entry is None:
        return None
    return {
        "id": order_id,
        "number": entry.number,
        "copies": entry.copies,
        "variants": {
            view.variant.name: [
                {"at_ms": moment.at_ms, "kind": moment.kind, "who": moment.who, "what": moment.what}
                for moment in order_history(
                    order_id, view.variant.expected(entry.expected).email, _history(view, entry)
                )
            ]
            for view in snapshot.variants
        },
    }


def _history(view: VariantSnapshot, entry: SentOrder) -> History:
    mine = [each for each in view.deliveries if each.order == entry.order_id]
    return History(view.observation, mine, view.faults, sends=entry.sends)


def _suspect(view: VariantSnapshot, outcomes: Outcomes) -> Iterator[tuple[str, ...]]:
    on_its_way = {
        *view.observation.waiting,
        *view.observation.parked,
    }  # the next delivery may correct it
    for what in ("lost", "charged_not_recorded"):
        for order_id in getattr(outcomes, what):
            if order_id not in on_its_way:
                yield view.variant.name, what, order_id


def _cells(entries: Sequence[SentOrder], view: VariantSnapshot, lasting: set[tuple[str, ...]]) -> dict[str, Plain]:
    """The state of each order in a variant. `beat` changes with the history of the order."""
    rows = {row["order_id"]: row for row in view.observation.orders}
    charges = Counter(
        each["metadata"].get("order_id") for each in view.observation.charges if each["status"] == "succeeded"
    )
    mails = Counter(address for mail in view.observation.mails for address in mail.to)
    beats = Counter(each.order for each in view.faults)
    for each in view.deliveries:
        beats[each.order] += 1 if each.ended_at_ms is None else 2

    def cell(entry: SentOrder) -> Plain:
        order_id = entry.order_id
        row = rows.get(order_id, {})
        charged, mailed = charges[order_id], mails[view.variant.address(entry.expected.email)]
        wrong = [text for holds, text in (
            (charged > 1, f"charged {charged} times"),
            ((view.variant.name, "charged_not_recorded", order_id) in lasting, "charged, not recorded"),
            ((view.variant.name, "lost", order_id) in lasting, "lost: no message left"),
            (order_id in view.observation.parked, "in a DLQ"),
            (mailed > 1, f"emailed {mailed} times"),
        ) if holds]  # fmt: skip
        state = row.get("state", "sent")
        return {
            "state": state,
            "charged": charged,
            "mailed": mailed,
            "final": state in ("paid", "declined") and "mailed_at" in row,
            "wrong": wrong,
            "beat": f"{beats[order_id]}.{len(entry.sends)}.{charged}.{mailed}.{len(row)}",
        }

    return {entry.order_id: cell(entry) for entry in entries}


def _variant(view: VariantSnapshot, outcomes: Outcomes, lasting: set[tuple[str, ...]], cells: Iterable[Plain]) -> Plain:
    cells = list(cells)
    lasts = Counter((what, name) for name, what, _ in lasting)
    return {
        "name": view.variant.name,
        "title": TITLES[view.variant.name],
        "about": ABOUT[view.variant.name],
        "provider": view.provider,
        "counts": {
            "orders": len(cells),
            "charged": sum(cell["charged"] > 0 for cell in cells),
            "charges": sum(cell["charged"] for cell in cells),
            "charged_twice": len(outcomes.charged_twice),
            "unrecorded": lasts["charged_not_recorded", view.variant.name],
            "lost": lasts["lost", view.variant.name],
            "mailed": sum(cell["mailed"] > 0 for cell in cells),
            "mailed_twice": len(outcomes.mailed_twice),
            "parked": len(outcomes.parked),
            "finished": sum(cell["final"] for cell in cells),
        },
        "steps": [
            {
                "queue": name,
                "waiting": view.queues[name].visible + view.queues[name].delayed,
                "in_flight": view.queues[name].in_flight,
                "parked": view.parked[name],
                "busy": view.busy.get(FUNCTION_OF[name].lower(), 0),
            }
            for name in QUEUES
        ],
    }


def _armed(snapshot: Snapshot, view: VariantSnapshot) -> str | None:
    """The armed fault of a variant, unless it was applied."""
    if snapshot.armed is None:
        return None
    applied = any(each.function == "payment" and each.at_ms >= snapshot.armed.at_ms for each in view.faults)
    return None if applied else snapshot.armed.kind.value
