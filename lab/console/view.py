"""From what was seen to what the page shows. Pure, but for the memory of since when something has looked wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tools.local.observe import QUEUES

from lab.console.book import Entry
from lab.console.look import Seen, Sight
from lab.contrast.verdict import Verdict, judge
from lab.contrast.visibility import FUNCTION_OF
from lab.demo.story import Told, story

Plain = dict[str, Any]

# Between two steps an order is in no queue, and a charge in no row yet: what lasts longer than this is wrong.
LASTING_MS = 10_000
TITLES = {"naive": "Naive", "ours": "This repository"}
ABOUT = {
    "naive": "as people write it first",
    "ours": "claim, charge, commit: one record an order",
}


class Patience:
    """Since when something has looked wrong, to be called so only if it lasts."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, ...], int] = {}

    def lasting(self, now_ms: int, seen: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """Those of `seen` that have been seen at each look for long enough."""
        self._since = {what: self._since.get(what, now_ms) for what in seen}
        return {what for what, since in self._since.items() if now_ms - since >= LASTING_MS}


def snapshot(sight: Sight, now_ms: int, patience: Patience) -> Plain:
    """All that the page shows but for timelines, as JSON."""
    verdicts = {
        seen.lane: judge([seen.lane.expected(entry.expected) for entry in sight.entries], seen.witnessed)
        for seen in sight.lanes
    }
    lasting = patience.lasting(now_ms, (what for seen in sight.lanes for what in _suspect(seen, verdicts[seen.lane])))
    cells = {seen.lane: _cells(sight.entries, seen, lasting) for seen in sight.lanes}
    return {
        "run": sight.run,
        "total": sight.total,
        "lanes": [
            _lane(seen, verdicts[seen.lane], lasting, cells[seen.lane].values()) | {"armed": _armed(sight, seen)}
            for seen in sight.lanes
        ],
        "orders": [
            {
                "id": entry.order_id,
                "number": entry.number,
                "copies": entry.copies,
                "amount": f"{entry.expected.amount / 100:.2f} {entry.expected.currency}",
                "lanes": {lane.name: of[entry.order_id] for lane, of in cells.items()},
            }
            for entry in reversed(sight.entries)
        ],
    }


def changes(before: Plain | None, now: Plain) -> Plain | None:
    """What a page that shows `before` must be told; None if it is nothing."""
    if before is None:
        return {**now, "whole": True}
    known = {order["id"]: order for order in before["orders"]}
    orders = [order for order in now["orders"] if known.pop(order["id"], None) != order]
    told: Plain = {name: now[name] for name in ("lanes", "total") if now[name] != before[name]}
    if orders:
        told["orders"] = orders
    if known:
        told["gone"] = list(known)
    return told or None


def timelines(sight: Sight, order_id: str) -> Plain | None:
    """What happened to an order in each lane; None if it is not known."""
    entry = next((entry for entry in sight.entries if entry.order_id == order_id), None)
    if entry is None:
        return None
    return {
        "id": order_id,
        "number": entry.number,
        "copies": entry.copies,
        "lanes": {
            seen.lane.name: [
                {"at_ms": moment.at_ms, "kind": moment.kind, "who": moment.who, "what": moment.what}
                for moment in story(order_id, seen.lane.expected(entry.expected).email, _told(seen, entry))
            ]
            for seen in sight.lanes
        },
    }


def _told(seen: Seen, entry: Entry) -> Told:
    mine = [each for each in seen.deliveries if each.order == entry.order_id]
    return Told(seen.witnessed, mine, seen.faults, sends=entry.sends)


def _suspect(seen: Seen, verdict: Verdict) -> Iterator[tuple[str, ...]]:
    on_its_way = {*seen.witnessed.waiting, *seen.witnessed.parked}  # whoever takes that message may still mend it
    for what in ("lost", "charged_not_recorded"):
        for order_id in getattr(verdict, what):
            if order_id not in on_its_way:
                yield seen.lane.name, what, order_id


def _cells(entries: Sequence[Entry], seen: Seen, lasting: set[tuple[str, ...]]) -> dict[str, Plain]:
    """Each order's state in a lane. `beat` changes with whatever its timeline shows."""
    rows = {row["order_id"]: row for row in seen.witnessed.orders}
    charges = Counter(
        each["metadata"].get("order_id") for each in seen.witnessed.charges if each["status"] == "succeeded"
    )
    mails = Counter(address for mail in seen.witnessed.mails for address in mail.to)
    beats = Counter(each.order for each in seen.faults)
    for each in seen.deliveries:
        beats[each.order] += 1 if each.ended_at_ms is None else 2

    def cell(entry: Entry) -> Plain:
        order_id = entry.order_id
        row = rows.get(order_id, {})
        charged, mailed = charges[order_id], mails[seen.lane.address(entry.expected.email)]
        wrong = [text for holds, text in (
            (charged > 1, f"charged {charged} times"),
            ((seen.lane.name, "charged_not_recorded", order_id) in lasting, "charged, and no row says so"),
            ((seen.lane.name, "lost", order_id) in lasting, "lost: no message is left"),
            (order_id in seen.witnessed.parked, "in a DLQ"),
            (mailed > 1, f"mailed {mailed} times"),
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


def _lane(seen: Seen, verdict: Verdict, lasting: set[tuple[str, ...]], cells: Iterable[Plain]) -> Plain:
    cells = list(cells)
    lasts = Counter((what, name) for name, what, _ in lasting)
    return {
        "name": seen.lane.name,
        "title": TITLES[seen.lane.name],
        "about": ABOUT[seen.lane.name],
        "provider": seen.provider,
        "counts": {
            "orders": len(cells),
            "charged": sum(cell["charged"] > 0 for cell in cells),
            "charges": sum(cell["charged"] for cell in cells),
            "charged_twice": len(verdict.charged_twice),
            "unrecorded": lasts["charged_not_recorded", seen.lane.name],
            "lost": lasts["lost", seen.lane.name],
            "mailed": sum(cell["mailed"] > 0 for cell in cells),
            "mailed_twice": len(verdict.mailed_twice),
            "parked": len(verdict.parked),
            "finished": sum(cell["final"] for cell in cells),
        },
        "steps": [
            {
                "queue": name,
                "waiting": seen.queues[name].visible + seen.queues[name].delayed,
                "in_flight": seen.queues[name].in_flight,
                "parked": seen.parked[name],
                "busy": seen.busy.get(FUNCTION_OF[name].lower(), 0),
            }
            for name in QUEUES
        ],
    }


def _armed(sight: Sight, seen: Seen) -> str | None:
    """What waits for the lane's next payment: what was armed, unless it has struck since."""
    if sight.armed is None:
        return None
    struck = any(each.function == "payment" and each.at_ms >= sight.armed.at_ms for each in seen.faults)
    return None if struck else sight.armed.kind.value
