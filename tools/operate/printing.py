"""For people: what the commands found, on standard output. Progress goes to standard error."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from shared.idempotency import Image
from tools.operate.audit import Audit
from tools.operate.discard import Discarded
from tools.operate.dlq import Letters
from tools.operate.judging import KINDS, Finding
from tools.operate.redrive import Redriven, Wish
from tools.operate.switch import Switched
from tools.operate.trace import Story

MOST_LINES = 30  # of one kind: a screen; JSON=1 lists them all

progress = Console(stderr=True, highlight=False, soft_wrap=True)


def dlq(found: Sequence[Letters]) -> None:
    """Each DLQ: what lies there, by reason, then message by message."""
    for letters in found:
        if letters.is_empty:
            print(f"{letters.queue}: empty")
            continue
        sample = "" if letters.whole else f", {len(letters.messages)} looked at"
        print(f"{letters.queue}: {letters.total} parked{sample}: {_counts(letters.by_reason) or 'none to be seen now'}")
        _table(
            ("order", "reason", "first parked at", "sent at", "message"),
            [(m.order_id, m.reason, m.first_parked_at, m.sent_at, m.message_id) for m in letters.messages],
        )


def redrive(wish: Wish, done: Redriven) -> None:
    """What was moved, left and refused."""
    moved = f"{done.moved['all']}, by SQS's own move task" if done.by_task else _counts(done.moved) or "nothing"
    print(f"{wish.queue}: {'would move' if wish.dry_run else 'moved'} {moved}")
    if done.left:
        print(f"left, not asked for: {_counts(done.left)} (ALL=1 or REASON=... moves them too)")
    if done.returned:
        print(f"left, parked since this began: {done.returned}")
    if done.failed:
        print(f"failed, still parked: {_counts(done.failed)}")
    if any("AccessDenied" in code for code in done.failed):
        print("A redrive is a send: in production name who may, at deploy time, OPERATORS=<IAM ARN pattern>,...")
    if not done.complete:
        print(f"stopped after {'so many failures' if done.failed else f'MAX={wish.most}'}: there may be more")


def audit(verdict: Audit) -> None:
    """Findings by kind, each with what it means."""
    by_kind: dict[str, list[Finding]] = defaultdict(list)
    for finding in verdict.findings:
        by_kind[finding.kind].append(finding)
    for kind, meaning in KINDS.items():
        if findings := by_kind[kind]:
            print(f"{len(findings)} {kind}{'' if findings[0].is_wrong else ' (a note)'}: {meaning}")
            _table(("order", "what"), [(finding.order_id, finding.detail) for finding in findings])
            print()
    if verdict.resent:
        print(f"{len(verdict.resent)} events to be sent again")
        _table(("order", "event"), list(verdict.resent.items()))
        print()
    looked_at = f"{verdict.orders} orders, {verdict.records} records, {verdict.charges} charges"
    print(f"Looked at {looked_at}; judged what is older than {verdict.age_s} s.")
    if waiting := ", ".join(f"{count} {queue}" for queue, count in verdict.waiting.items() if count):
        print(f"Messages on their way: {waiting}.")
    wrong = len(verdict.wrong)
    print(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong." if wrong else "Nothing is wrong.")


def trace(story: Story) -> None:
    """One order on one screen."""
    if not story.is_known:
        print(f"{story.order_id}: nobody has heard of it.")
        return
    facts = ", ".join(f"{name} {value}" for name, value in (story.row or {}).items() if name != "order_id" and value)
    print(f"{story.order_id}: {facts or 'there is no order row'}")
    records = ("record", "status", "attempt", "uncertain", "owner", "lease until", "expires at")
    _table(records, [record.values() for record in story.records])
    _table(("intent", "status", "amount", "currency", "on the row"), [intent.values() for intent in story.intents])
    print(f"receipt: {story.receipt_at or 'none'}\n")
    moments = [(moment.at, moment.who, moment.what) for moment in story.moments]
    _table(("when", "who", "what"), moments, most=len(moments))
    for gap in story.gaps:
        print(f"not looked at in full: {gap}")


def switched(done: Switched) -> None:
    """What the queue's mapping was, and what it is."""
    before = "" if done.was == done.now else f", was {done.was}"
    print(f"{done.queue}: {done.now}{before}; {done.waiting} messages wait")
    if done.now == "Disabled":
        print("What was taken before is finished. A deploy may enable it, or leave it so: `make resume` in the end.")


def record(seen: Mapping[str, Any]) -> None:
    """An idempotency record that is to be forgotten: on standard error, where the question is."""
    for name, value in seen.items():
        progress.print(f"  {name:<23} {', '.join(value) if isinstance(value, list) else value}", markup=False)


def forgotten(key: str, image: Image | None) -> None:
    """Whether there was such a record."""
    print(f"{key}: {'there is no such record' if image is None else 'forgotten'}")


def discarded(done: Discarded) -> None:
    """How many messages, and where they are now."""
    if not done.count:
        print(f"{done.queue}: nothing is parked for reason {done.reason}")
        return
    print(f"{done.queue}: discarded {done.count} {_reason(done.reason)}")
    print(f"They are in {done.file}, which only you may read: customers' data. Each line is a SendMessage request.")


def recovered(done: Mapping[str, int]) -> None:
    """What became of the copy's rows."""
    print(f"put back {done['put_back']} rows, {done['known_to_be_charged']} of them with the intent that was charged")
    print(f"left alone {done['there_already']} that are there")


def _table(names: Sequence[str], rows: Sequence[Iterable[Any]], most: int = MOST_LINES) -> None:
    """Columns as wide as their longest cell, never cut: an id must survive being copied."""
    if not rows:
        return
    lines = [list(names), *([_shown(value) for value in row] for row in rows[:most])]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if len(rows) > most:
        print(f"  ... and {len(rows) - most} more: JSON=1 lists all")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {_reason(reason)}" for reason, count in Counter(counts).most_common())


def _reason(reason: str) -> str:
    return "without a reason (received as often as the outage takes)" if reason == "none" else reason


def _shown(value: Any) -> str:
    match value:
        case None | "":
            return "-"
        case True:
            return "yes"
        case False:
            return "no"
    return str(value)
