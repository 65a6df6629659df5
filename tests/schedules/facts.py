"""Observations of a schedule besides its final state: claims, superseded threads, sent events, results, answers."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.schedules.dynamodb import Change
from tests.schedules.expressions import Item
from tests.schedules.services import Message

# A superseded worker may still write the intent's id on a row that has none. Only the intent on the row is confirmed,
# and the order's state, its record and its events do not change.
_INTENT_ONLY = {"intent_id", "intent_at"}

NOBODY = "0"


@dataclass
class Facts:
    """The observations, recorded as they happen. They are strings, so that they can be compared and printed."""

    claims: dict[str, tuple[str, str]] = field(default_factory=dict)  # thread → record key, owner
    uncertain: dict[str, bool] = field(default_factory=dict)  # thread → whether its claim is uncertain
    superseded: set[str] = field(default_factory=set)  # threads
    committed: set[str] = field(default_factory=set)  # threads that completed their own claim
    results: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # record key → results handed out
    events: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # id → data sent, as JSON
    counted: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # metric → count
    answers: list[tuple[int, str]] = field(default_factory=list)  # the API's, status and body
    offences: set[str] = field(default_factory=set)  # violations that were observed as they happened: "<invariant>: …"

    def changed(self, by: str, changes: list[Change]) -> None:
        """Record the changes of a write by a thread. NOBODY stands for TTL or a person."""
        for change in changes if by != NOBODY else ():
            if change.table == "idempotency":
                self._record_changed(by, change)
            elif change.table == "orders":
                self._order_changed(by, change)

    def _record_changed(self, by: str, change: Change) -> None:
        old, new = change.old or {}, change.new or {}
        owner, was = text(new, "owner"), text(old, "owner")
        if by in self.superseded:
            self.offences.add(f"a_zombie_wrote_nothing: {by} wrote {change.key[0]}")
        if text(new, "status") == "INPROGRESS" and owner != was:
            for thread, (key, _) in self.claims.items():
                if key == change.key[0] and thread not in self.committed | {by}:
                    self.superseded.add(thread)
            self.claims[by] = (change.key[0], owner)
        elif text(old, "status") == "INPROGRESS" and self.claims.get(by, ("", ""))[1] != was:
            self.offences.add(f"a_zombie_wrote_nothing: {by} wrote {change.key[0]}, claimed by {was}")
        elif text(old, "status") == "INPROGRESS" and text(new, "status") == "COMPLETED":
            self.committed.add(by)

    def _order_changed(self, by: str, change: Change) -> None:
        old, new = change.old or {}, change.new or {}
        moved = {name for name in {*old, *new} if old.get(name) != new.get(name)}
        if by in self.superseded and moved - _INTENT_ONLY:
            self.offences.add(f"a_zombie_wrote_nothing: {by} wrote order {change.key[0]}: {sorted(moved)}")
        before, after = text(old, "state"), text(new, "state")
        if after not in _NEXT[before]:
            self.offences.add(f"one_final_state: order {change.key[0]} went from {before or 'nothing'} to {after}")
        if "settling" in old and "intent_id" in moved:
            self.offences.add(f"one_final_state: order {change.key[0]} got an intent after a person marked it")
        if "intent_id" in old and "intent_id" in moved:
            self.offences.add(f"one_final_state: order {change.key[0]} got another intent")

    def returned(self, record_key: str, result: object) -> None:
        """Record the result that the engine returned to a handler."""
        self.results[record_key].add(json.dumps(result, sort_keys=True))

    def sent(self, message: Message) -> None:
        """Record an event that a queue accepted."""
        body = json.loads(message.body)
        self.events[body["id"]].add(json.dumps(body["data"], sort_keys=True))

    def count(self, counts: Mapping[str, int]) -> None:
        """Add counts of metrics."""
        for name, value in counts.items():
            self.counted[name] += value

    def save(self) -> dict[str, Any]:
        """Return a copy of everything, for `restore`."""
        return {name: _copy(value) for name, value in vars(self).items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Return to what was saved."""
        vars(self).update({name: _copy(value) for name, value in saved.items()})

    def state(self) -> object:
        """Comparable."""
        return (
            sorted(self.claims.items()),
            sorted(self.uncertain.items()),
            sorted(self.superseded),
            sorted(self.committed),
            sorted((key, sorted(found)) for key, found in self.results.items()),
            sorted((key, sorted(found)) for key, found in self.events.items()),
            sorted(self.answers),
            sorted(self.offences),
        )


_NEXT: Mapping[str, set[str]] = {
    "": {"requested", "placed"},
    "requested": {"requested", "placed"},
    "placed": {"placed", "paid", "declined"},
    "paid": {"paid"},
    "declined": {"declined"},
}


def _copy(value: Any) -> Any:
    copied = value.copy()
    if isinstance(value, defaultdict) and value.default_factory is set:
        copied.update({name: set(found) for name, found in value.items()})
    return copied


def text(item: Item, name: str) -> str:
    """Return a string attribute, or an empty text."""
    value: Any = item.get(name, {}).get("S", "")
    return str(value)
