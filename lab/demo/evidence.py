"""Collect the evidence after a run, and report on each variant."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tools.local import logs
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES, Ledger, Mailbox, Queues, Receipts, Tables

from lab.demo.audit import DeadLetter, Evidence, audit
from lab.demo.kills import Kill
from lab.demo.order_history import History
from lab.demo.plan import MISBEHAVES, PlannedOrder
from lab.demo.sender import Tally
from lab.demo.terminal import Figures
from lab.demo.variant_report import VariantReport, report
from lab.faults.fault_table import FaultTable
from lab.faults.journal import Delivery
from lab.variants import THIS_REPO, Variant
from lab.variants.observation import observe

CONSUMERS = ("Order", "Payment", "Email")


@dataclass(frozen=True)
class RunResult:
    """What a run sent, what was accepted, which workers were killed from outside, and all deliveries."""

    sent: Sequence[PlannedOrder]
    tally: Tally
    kills: Sequence[Kill] = ()
    deliveries: Sequence[Delivery] = ()


def collect(running: LocalDeployment) -> Evidence:
    """Read ledger, mailbox, tables, bucket and queues of this repository's pipeline."""
    tables, queues = Tables(running), Queues(running)
    return Evidence(
        charges=Ledger(running).charges(),
        mails=THIS_REPO.mails(Mailbox(running).mails()),
        orders=tables.orders(),
        records=tables.records(),
        receipts=frozenset(Receipts(running).all()),
        waiting={name: queues.depth(name).total for name in QUEUES},
        dead_letters=[_dead_letter(name, message) for name in QUEUES for message in queues.messages(f"{name}Dlq")],
    )


def reports(
    running: LocalDeployment, result: RunResult, evidence: Evidence, variants: Iterable[Variant]
) -> list[VariantReport]:
    """Report on each variant. This repository is audited by stricter rules as well."""
    accepted = list(result.tally.accepted.values())
    audited = audit(accepted, evidence)
    violations = [f"{each.order_id or '-'}: {each.what}" for each in audited.violations]

    def of(variant: Variant) -> VariantReport:
        history = _history(running, variant, result)
        if variant is THIS_REPO:
            return report(variant, accepted, history, second_mails=audited.second_mails, violations=violations)
        return report(variant, result.tally.shared, history)

    with ThreadPoolExecutor() as pool:
        return list(pool.map(of, variants))


def figures(running: LocalDeployment, result: RunResult, evidence: Evidence) -> Figures:
    """Count what the terminal shows of this repository, from the evidence and the logs of the functions."""
    names = {name: running.outputs[f"{name}FunctionName"] for name in CONSUMERS}
    for function_name in names.values():
        logs.flush(running, function_name)
    counts = logs.counts(line for function_name in names.values() for line in logs.lines(running, function_name))
    by_name: Counter[str] = Counter()
    for (_, name), count in counts.items():
        by_name[name] += count
    records = {record["id"]: record for record in evidence.records}
    proven = [kill for kill in result.kills if kill.is_proven_by(records)]
    accepted = result.tally.accepted.values()
    return Figures(
        accepted=len(accepted),
        declined=sum(not order.pays for order in accepted),
        by_api=sum(planned.by_api for planned in result.sent),
        misbehaviours=sum(planned.payment_method in MISBEHAVES for planned in result.sent),
        requests=result.tally.requests,
        replayed_by_api=result.tally.replayed,
        replayed=by_name["DuplicateReplayed"],
        kills=Counter(kill.function for kill in proven),
        takeovers=by_name["Takeover"],
        charges=sum(charge["status"] == "succeeded" for charge in evidence.charges),
        declines=sum(charge["status"] == "failed" for charge in evidence.charges),
        mails=len(evidence.mails),
        dead_letters=len(evidence.dead_letters),
    )


def _history(running: LocalDeployment, variant: Variant, result: RunResult) -> History:
    faults = FaultTable(running.client("dynamodb"), running.outputs["FaultsTableName"])
    return History(
        observation=observe(variant, running),
        deliveries=[each for each in result.deliveries if each.variant == variant.name],
        faults=sorted(faults.injected(variant.name), key=lambda each: each.at_ms),
        kills=result.kills if variant is THIS_REPO else (),
        sends=result.tally.sends,
    )


def _dead_letter(queue: str, message: dict[str, object]) -> DeadLetter:
    try:
        order_id = json.loads(str(message["Body"]))["data"]["order_id"]
    except (ValueError, KeyError, TypeError):
        order_id = ""
    attributes = message["MessageAttributes"]
    reason = attributes.get("reason", {}).get("StringValue") if isinstance(attributes, dict) else None
    return DeadLetter(queue, str(order_id), reason or "received too often")
