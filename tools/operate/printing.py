"""The results of the commands as text for people, on standard output."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.idempotency import Image
from shared.orders.audit import KINDS, Finding
from tools.operate.audit import Audit
from tools.operate.commands import Discarded, Switched
from tools.operate.dlq import DlqContents
from tools.operate.redrive import Redriven, Selection
from tools.operate.settle import Settled
from tools.operate.trace import Story
from tools.progress import stderr

LINES_MAX = 30  # of one kind: one screen; JSON=1 prints all


def dlq(dlqs: Sequence[DlqContents]) -> None:
    """Print each DLQ: counts by reason, then the messages."""
    for contents in dlqs:
        if contents.is_empty:
            print(f"{contents.queue}: empty")
            continue
        part = "" if contents.complete else f", {len(contents.messages)} of them read"
        print(f"{contents.queue}: {contents.total} parked{part}: {_counts(contents.by_reason) or 'all hidden now'}")
        _table(
            ("order", "reason", "first parked at", "sent at", "message"),
            [(m.order_id, m.reason, m.first_parked_at, m.sent_at, m.message_id) for m in contents.messages],
        )


def redrive(selection: Selection, result: Redriven) -> None:
    """Print what was moved, left and refused."""
    moved = f"{result.moved['all']}, by a move task of SQS" if result.by_task else _counts(result.moved) or "nothing"
    print(f"{selection.queue}: {'would move' if selection.dry_run else 'moved'} {moved}")
    if result.left:
        print(f"left, not selected: {_counts(result.left)} (to move them too: ALL=1 or REASON=...)")
    if result.returned:
        print(f"left, parked since the redrive began: {result.returned}")
    if result.failed:
        print(f"failed, still parked: {_counts(result.failed)}")
    if any("AccessDenied" in code for code in result.failed):
        print("A redrive needs the right to send. In prod, deploy with OPERATORS=<IAM ARN pattern>,...")
    if not result.complete:
        cause = "too many failures" if result.failed else f"MAX={selection.limit}"
        print(f"stopped because of {cause}: there may be more")


def audit(result: Audit) -> None:
    """Print the findings by kind, each kind with its meaning."""
    by_kind: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        by_kind[finding.kind].append(finding)
    for kind, meaning in KINDS.items():
        if findings := by_kind[kind]:
            print(f"{len(findings)} {kind}{'' if findings[0].is_wrong else ' (a note)'}: {meaning}")
            _table(("order", "detail"), [(finding.order_id, finding.detail) for finding in findings])
            print()
    if result.resent:
        print(f"{len(result.resent)} events to send again")
        _table(("order", "result"), list(result.resent.items()))
        print()
    print(f"Read {result.orders} orders, {result.records} records, {result.charges} charges.")
    print(f"Facts younger than {result.age_s} s were not checked.")
    if waiting := ", ".join(f"{count} {queue}" for queue, count in result.waiting.items() if count):
        print(f"Messages in the queues: {waiting}.")
    wrong = len(result.wrong)
    print(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong." if wrong else "Nothing is wrong.")


def trace(story: Story) -> None:
    """Print one order on one screen."""
    if not story.is_known:
        print(f"{story.order_id}: no such order is known.")
        return
    facts = ", ".join(f"{name} {value}" for name, value in (story.row or {}).items() if name != "order_id" and value)
    print(f"{story.order_id}: {facts or 'there is no order row'}")
    records = ("record", "status", "attempt", "uncertain", "owner", "lease until", "expires at")
    _table(records, [record.values() for record in story.records])
    _table(("intent", "status", "amount", "currency", "on the row"), [intent.values() for intent in story.intents])
    print(f"receipt: {story.receipt_at or 'none'}\n")
    moments = [(moment.at, moment.who, moment.what) for moment in story.moments]
    _table(("time", "source", "what happened"), moments, limit=len(moments))
    for gap in story.gaps:
        print(f"not read completely: {gap}")


def switched(result: Switched) -> None:
    """Print the old and the new state of a queue's mapping."""
    before = "" if result.was == result.now else f", was {result.was}"
    print(f"{result.queue}: {result.now}{before}; {result.waiting} messages wait")
    if result.now == "Disabled":
        print(
            "Messages that were received before are finished. `make resume` enables the queue; a deploy may do so too."
        )


def record(attributes: Mapping[str, Any]) -> None:
    """Print an idempotency record on standard error, where the question follows."""
    for name, value in attributes.items():
        stderr.print(f"  {name:<23} {', '.join(value) if isinstance(value, list) else value}", markup=False)


def forgotten(key: str, image: Image | None) -> None:
    """Print whether there was such a record."""
    print(f"{key}: {'there is no such record' if image is None else 'forgotten'}")


def discarded(result: Discarded) -> None:
    """Print how many messages were moved, and where they are now."""
    if not result.discarded:
        print(f"{result.queue}: nothing is parked for reason {result.reason}")
        return
    print(f"{result.queue}: discarded {result.discarded} {_reason(result.reason)}")
    print(f"They are in {result.file}, which only you can read. The file holds customers' data.")
    print("Each line is a SendMessage request.")
    if result.open_orders:
        print(f"{len(result.open_orders)} orders stay open, and the sweep sends their events again:")
        _table(("order",), [(order_id,) for order_id in result.open_orders])
        print("If an order can never be paid, end it: make settle ORDER=<order> AS=declined REASON=<reason>")


def settled(result: Settled) -> None:
    """Print how the order ended, and what happens next."""
    intent = f"its intent {result.intent_id} is canceled" if result.intent_id else "it had no intent"
    print(f"{result.order_id}: {result.state}, reason {result.reason}; {intent}")
    print("The relay sends the event, and the customer gets the decline email.")
    print("A message of this order that is parked does nothing any more: redrive or discard it.")


def recovered(counts: Mapping[str, int]) -> None:
    """Print what happened to the rows of the copy."""
    charged = f"{counts['known_to_be_charged']} of them with the intent that was charged"
    print(f"put back {counts['put_back']} rows, {charged}")
    print(f"left {counts['there_already']} rows that exist")


def _table(columns: Sequence[str], rows: Sequence[Iterable[Any]], limit: int = LINES_MAX) -> None:
    """Print columns as wide as their longest cell. Cells are never cut, so that ids can be copied."""
    if not rows:
        return
    lines = [list(columns), *([_cell(value) for value in row] for row in rows[:limit])]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if len(rows) > limit:
        print(f"  ... and {len(rows) - limit} more: JSON=1 prints all")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {_reason(reason)}" for reason, count in Counter(counts).most_common())


def _reason(reason: str) -> str:
    return "without a reason (received too often)" if reason == "none" else reason


def _cell(value: Any) -> str:
    match value:
        case None | "":
            return "-"
        case True:
            return "yes"
        case False:
            return "no"
    return str(value)
