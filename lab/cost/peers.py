"""The same order, from its message on the first queue to its mail, on other engines.

With Powertools it is measured, on lab/demo/with_powertools. The engines are not run: their operations follow from three
steps (assumptions.py), their price lists say what those cost, and what the steps themselves do for the business, with
nothing to guard it, is taken from the Powertools run less its idempotency.

Left out, since all pay it alike: receipt and mail, the API before the first queue, traces, alarms, storage.
"""

from collections.abc import Mapping
from typing import Any

from lab.cost import assumptions as assumed
from lab.cost.pricing import Bill, Prices, bill_of, seconds_of, times, total
from lab.cost.this_repo import ENTRANCE, QUEUES, STAGES, Load, stage_bill

Counts = Mapping[str, Any]

THIS_REPO, POWERTOOLS = "this repository", "Powertools idempotency"
DURABLE, STANDARD, EXPRESS = "Lambda durable functions", "Step Functions Standard", "Step Functions Express"
TEMPORAL = "Temporal Cloud"

ALIKE = ("s3_put", "mail")
GUARDED = 2  # of Powertools' writes a step: its record in progress, its record done


def this_repo(counts: Counts, load: Load) -> Bill:
    """From the first queue on."""
    return total(stage_bill(counts["this-repo"][load.size], stage, load) for stage in STAGES if stage not in ENTRANCE)


def powertools(counts: Counts, load: Load) -> Bill:
    """Its batch processor takes one record after the other."""
    of = counts["powertools"][load.size]
    bills: list[Bill] = []
    for kind, share in (("first", 1.0), ("again", load.duplicates)):
        bills += [times(bill_of(of[kind][step], load.messages, queue=True), share) for step in QUEUES]
    return total(bills)


def bare(counts: Counts, step: str) -> dict[str, float]:
    """A step's requests to AWS and the provider without guard, event and log: what is left of Powertools' run."""
    of = dict(counts["powertools"]["alone"]["first"][step])
    of = {call: n for call, n in of.items() if not call.startswith("sqs") and call not in ("log_bytes", "log_lines")}
    of["write_units"] -= GUARDED
    of["dynamodb.PutItem"] -= 1
    of["dynamodb.UpdateItem"] -= 1
    return of


def durable(counts: Counts, load: Load) -> Bill:
    """One durable function, started by name; a duplicate finds that execution."""
    steps = [bare(counts, step) for step in QUEUES]
    written = (counts["bytes"]["request"] + counts["bytes"]["results"]) / assumed.GB
    bill = bill_of({**total(steps), "invocations": 1}, 1)
    bill["durable_operation"] = assumed.DURABLE_OPERATIONS
    bill["durable_gb_written"] = written
    bill["durable_gb_month"] = written * assumed.DURABLE_RETAINED_MONTHS
    return total([bill, times(_dispatched(load), 1 + load.duplicates)])


def standard(counts: Counts, load: Load) -> Bill:
    """A state machine of three Lambda tasks, started by name; a duplicate finds that execution."""
    bill = _tasks(counts)
    bill["state_transition"] = assumed.STATE_TRANSITIONS
    return total([bill, times(_dispatched(load), 1 + load.duplicates)])


def express(counts: Counts, load: Load) -> Bill:
    """As above behind a pipe, and what runs is not remembered: a duplicate runs it all once more."""
    bill = total([_tasks(counts), {"sqs_request": assumed.POLLER_REQUESTS, "pipe_request": 1}])
    seconds = sum(seconds_of({**bare(counts, step), "invocations": 1}) for step in QUEUES)
    bill["express_request"] = 1
    bill["express_gb_second"] = seconds * assumed.EXPRESS_MEMORY_MB / 1024
    return times(bill, 1 + load.duplicates)


def temporal(counts: Counts, load: Load) -> Bill:
    """The activities as Lambda invocations, to have their time at the same price; Actions are priced by the month."""
    bill = _tasks(counts)
    bill["temporal_gb_hour"] = assumed.TEMPORAL_HISTORY_KB * assumed.KB / assumed.GB * assumed.TEMPORAL_RETENTION_H
    return total([bill, times(_dispatched(load), 1 + load.duplicates)])


def month_usd(counts: Counts, load: Load, at: Prices) -> dict[str, float]:
    """Dollars a month for each, from the queue to the mail."""
    each = {
        THIS_REPO: this_repo(counts, load),
        POWERTOOLS: powertools(counts, load),
        DURABLE: durable(counts, load),
        STANDARD: standard(counts, load),
        EXPRESS: express(counts, load),
    }
    usd = {name: load.orders * at.cost(_apart(bill)) for name, bill in each.items()}
    stored = _apart(temporal(counts, load))
    history = load.orders * stored.pop("temporal_gb_hour") * at.usd["temporal_gb_hour"]
    engine = at.temporal_month(load.orders * assumed.TEMPORAL_ACTIONS, history)
    return {**usd, TEMPORAL: load.orders * at.cost(stored) + engine}


def _apart(bill: Bill) -> Bill:
    return {unit: amount for unit, amount in bill.items() if unit not in ALIKE}


def _tasks(counts: Counts) -> Bill:
    return total(bill_of({**bare(counts, step), "invocations": 1}, 1) for step in QUEUES)


def _dispatched(load: Load) -> Bill:
    """A function takes the message off its queue and starts an execution by the order's name, or finds it there.

    Neither an event source mapping nor a pipe gives an execution a name:
    https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html
    https://docs.aws.amazon.com/eventbridge/latest/pipes-reference/API_PipeTargetStateMachineParameters.html
    """
    return bill_of({"invocations": 1, "engine.start": load.messages}, load.messages, queue=True)
