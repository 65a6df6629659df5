"""Asks every witness after the run, and counts what the table shows."""

import json
from collections import Counter
from collections.abc import Sequence

from tools.local import logs
from tools.local.observe import QUEUES, Ledger, Mailbox, Queues, Receipts, Tables
from tools.local.running import Running

from lab.contrast import collect as lanes
from lab.demo.audit import DeadLetter, Evidence
from lab.demo.lanes import OURS, Lane
from lab.demo.plan import MISBEHAVES
from lab.demo.report import Figures
from lab.demo.run import Done
from lab.demo.story import Told
from lab.faults.arm import Faults
from lab.faults.journal import Delivery

CONSUMERS = ("Order", "Payment", "Email")


def collect(running: Running) -> Evidence:
    """What the ledger, the mailbox, the tables, the bucket and the queues of ours say now."""
    tables, queues = Tables(running), Queues(running)
    return Evidence(
        charges=Ledger(running).charges(),
        mails=OURS.mails(Mailbox(running).mails()),
        orders=tables.orders(),
        records=tables.records(),
        receipts=frozenset(Receipts(running).all()),
        waiting={name: queues.depth(name).total for name in QUEUES},
        dead_letters=[_dead_letter(name, message) for name in QUEUES for message in queues.messages(f"{name}Dlq")],
    )


def told(running: Running, lane: Lane, done: Done, deliveries: Sequence[Delivery]) -> Told:
    """All that is known of a lane. `deliveries`: of all lanes."""
    faults = Faults(running.client("dynamodb"), running.outputs["FaultsTableName"])
    return Told(
        witnessed=lanes.collect(lane, running),
        deliveries=[each for each in deliveries if each.lane == lane.name],
        faults=sorted(faults.injected(lane.name), key=lambda each: each.at_ms),
        kills=done.kills if lane is OURS else (),
        sends=done.tally.sends,
    )


def _dead_letter(queue: str, message: dict[str, object]) -> DeadLetter:
    try:
        order_id = json.loads(str(message["Body"]))["data"]["order_id"]
    except (ValueError, KeyError, TypeError):
        order_id = ""
    attributes = message["MessageAttributes"]
    reason = attributes.get("reason", {}).get("StringValue") if isinstance(attributes, dict) else None
    return DeadLetter(queue, str(order_id), reason or "received too often")


def figures(running: Running, done: Done, evidence: Evidence) -> Figures:
    """Counted from the witnesses and from what the functions logged."""
    names = {name: running.outputs[f"{name}FunctionName"] for name in CONSUMERS}
    for function_name in names.values():
        logs.flush(running, function_name)
    counts = logs.counts(line for function_name in names.values() for line in logs.lines(running, function_name))
    by_name: Counter[str] = Counter()
    for (_, name), count in counts.items():
        by_name[name] += count
    records = {record["id"]: record for record in evidence.records}
    proven = [kill for kill in done.kills if kill.is_proven_by(records)]
    accepted = done.tally.accepted.values()
    return Figures(
        accepted=len(accepted),
        declined=sum(not order.pays for order in accepted),
        by_api=sum(planned.by_api for planned in done.sent),
        misbehaviours=sum(planned.payment_method in MISBEHAVES for planned in done.sent),
        requests=done.tally.requests,
        replayed_by_api=done.tally.replayed,
        replayed=by_name["DuplicateReplayed"],
        kills=Counter(kill.function for kill in proven),
        takeovers=by_name["Takeover"],
        charges=sum(charge["status"] == "succeeded" for charge in evidence.charges),
        declines=sum(charge["status"] == "failed" for charge in evidence.charges),
        mails=len(evidence.mails),
        dead_letters=len(evidence.dead_letters),
    )
