"""The invariants: ALWAYS holds whenever no worker runs, FINALLY holds when no work is left.

Each invariant yields its violations.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeAlias

from tests.schedules.facts import text
from tests.schedules.run import Run
from tests.schedules.scenarios import OPERATIONS, Scenario
from tests.schedules.services import Mail

Invariant: TypeAlias = Callable[[Scenario, Run], Iterator[str]]


def orders_of(run: Run) -> dict[str, dict[str, object]]:
    """Return the order rows, by id."""
    return {key[0]: dict(item) for key, item in run.model.tables.items["orders"].items()}


def charges_of(run: Run) -> dict[str, list[dict[str, object]]]:
    """Return the charges of the provider's ledger, by order."""
    found: dict[str, list[dict[str, object]]] = defaultdict(list)
    for (kind, _), item in run.model.tables.items["ledger"].items():
        if kind.startswith("charge#"):
            charge = json.loads(item["body"]["S"])
            found[charge["metadata"]["order_id"]].append(charge)
    return found


def one_final_state(_: Scenario, run: Run) -> Iterator[str]:
    """An order's state only moves forward, ends once, and its intent's id is never replaced."""
    yield from _offences(run, "one_final_state")


def charged_at_most_once(_: Scenario, run: Run) -> Iterator[str]:
    """The ledger has at most one successful charge per order. Each charge belongs to the intent on the order's row."""
    rows = run.model.tables.items["orders"]
    for order_id, charges in charges_of(run).items():
        paid = [charge["id"] for charge in charges if charge["paid"]]
        if len(paid) > 1:
            yield f"order {order_id} was charged {len(paid)} times"
        intent = text(rows.get((order_id,), {}), "intent_id")
        for charge in charges:
            if charge["payment_intent"] != intent:
                yield f"{charge['id']} is by intent {charge['payment_intent']}, the row has {intent or 'none'}"


def charged_the_total(_: Scenario, run: Run) -> Iterator[str]:
    """Every charge has the amount and the currency of the order that it names."""
    rows = run.model.tables.items["orders"]
    for order_id, charges in charges_of(run).items():
        row = rows.get((order_id,), {})
        total = (row.get("total", {}).get("N"), text(row, "currency").lower())
        for charge in charges:
            if (str(charge["amount"]), charge["currency"]) != total:
                yield f"{charge['id']} is {charge['amount']} {charge['currency']}, order {order_id} costs {total}"


def state_tells_the_charge(_: Scenario, run: Run) -> Iterator[str]:
    """A paid order has one successful charge, and a declined order has none."""
    charges = charges_of(run)
    for order_id, row in orders_of(run).items():
        paid = sum(bool(charge["paid"]) for charge in charges[order_id])
        state = text(row, "state")
        if (state == "paid" and paid != 1) or (state == "declined" and paid):
            yield f"order {order_id} is {state} with {paid} charges"


def a_zombie_wrote_nothing(_: Scenario, run: Run) -> Iterator[str]:
    """A superseded worker changes no record and no order, except the id of an intent on a row that has none."""
    yield from _offences(run, "a_zombie_wrote_nothing")


def a_late_claim_is_refused(_: Scenario, run: Run) -> Iterator[str]:
    """A late copy of a claim does not take a key that was claimed after the copy was sent."""
    yield from _offences(run, "a_late_claim_is_refused")


def acknowledged_is_done(_: Scenario, run: Run) -> Iterator[str]:
    """No message is acknowledged, and no handler returns, before its work is completed or parked."""
    yield from _offences(run, "acknowledged_is_done")


def events_keep_their_content(_: Scenario, run: Run) -> Iterator[str]:
    """All copies of an event have the same content."""
    for event_id, contents in run.facts.events.items():
        if len(contents) > 1:
            yield f"{event_id} was sent with {len(contents)} contents"


def the_result_is_the_winners(_: Scenario, run: Run) -> Iterator[str]:
    """All workers that finished under a key got the same result, and an existing record holds this result."""
    for key, results in run.facts.results.items():
        record = run.model.tables.items["idempotency"].get((key,), {})
        stored = {json.dumps(json.loads(text(record, "data")), sort_keys=True)} if "data" in record else results
        if results != stored or len(results) > 1:
            yield f"{key} holds {stored}, workers got {results}"


def a_second_mail_only_in_its_window(_: Scenario, run: Run) -> Iterator[str]:
    """A second email needs a worker that sent one and did not commit, and a next attempt that was uncertain."""
    mails: dict[str, list[Mail]] = defaultdict(list)
    for mail in run.model.rest.mails:
        mails[mail.request["EmailTags"][0]["Value"]].append(mail)
    for key, sent in mails.items():
        uncommitted = {mail.by for mail in sent} - run.facts.committed
        if len(sent) - 1 > len(uncommitted):
            yield f"{key}: {len(sent)} emails, {len(uncommitted)} workers without commit"
        if len(sent) > 1 and not run.faults:
            yield f"{key}: {len(sent)} emails without a fault"
        for mail in sent[1:]:
            if not run.facts.uncertain[mail.by] and mail.by not in run.facts.superseded:
                yield f"{key}: {mail.by} sent another email and was not uncertain"


def every_order_ends(scenario: Scenario, run: Run) -> Iterator[str]:
    """Every accepted order is in a final state of the scenario, and mailed if the scenario sends emails."""
    rows = orders_of(run)
    if bool(rows) is not bool(scenario.ends):
        yield f"orders: {sorted(rows)}"
    for order_id, row in rows.items():
        if text(row, "state") not in scenario.ends:
            yield f"order {order_id} ends as {text(row, 'state')}"
        if scenario.mailed and not text(row, "mailed_at"):
            yield f"order {order_id} was never marked as mailed"


def an_open_order_waits_under_a_name(_: Scenario, run: Run) -> Iterator[str]:
    """When no work is left behind the payments queue, a placed order has a message in its DLQ, with a reason."""
    if not any(getattr(source, "queue", "") == "payments" for source in run.sources):
        return
    named = {
        json.loads(message.body).get("data", {}).get("order_id")
        for message in run.model.queues.waiting["payments-dlq"]
        if message.attributes.get("reason", {}).get("StringValue")
    }
    for order_id, row in orders_of(run).items():
        if text(row, "state") == "placed" and order_id not in named:
            yield f"order {order_id} is placed, and no message of it is parked"


def the_customer_was_told(scenario: Scenario, run: Run) -> Iterator[str]:
    """A final order has its email, and a paid order has its receipt in the bucket."""
    if not scenario.mailed:
        return
    if not run.model.rest.mails:
        yield "no mail"
    for order_id, row in orders_of(run).items():
        if text(row, "state") == "paid" and ("receipts", f"receipts/{order_id}.html") not in run.model.rest.objects:
            yield f"order {order_id} has no receipt"


def no_record_is_stuck(_: Scenario, run: Run) -> Iterator[str]:
    """No record is in progress when no work is left.

    The exception is a record whose message is in the DLQ: after an unknown outcome the key stays with that message.
    """
    parked = {
        f"{operation}#{json.loads(message.body).get('data', {}).get('order_id')}"
        for queue, operation in OPERATIONS.items()
        for message in run.model.queues.waiting[f"{queue}-dlq"]
    }
    for key, record in run.model.tables.items["idempotency"].items():
        forgotten = int(record["expiration"]["N"]) * 1000 <= run.clock.ms
        redrivable = key[0] in parked and int(record["in_progress_expiration"]["N"]) <= run.clock.ms
        if text(record, "status") != "COMPLETED" and not forgotten and not redrivable:
            yield f"{key[0]} is {text(record, 'status')}"


def every_event_was_sent(scenario: Scenario, run: Run) -> Iterator[str]:
    """If the scenario has a relay, each event of each outbox was accepted by a queue at least once."""
    if not scenario.relayed:
        return
    for key, record in run.model.tables.items["idempotency"].items():
        for entry in json.loads(text(record, "outbox") or "[]"):
            if entry["event"]["id"] not in run.facts.events:
                yield f"{entry['event']['id']} of {key[0]} was never sent"


def what_is_parked_deserves_it(scenario: Scenario, run: Run) -> Iterator[str]:
    """The DLQs hold the messages that the scenario parks, for its reasons, and no others."""
    reasons = {
        message.attributes["reason"]["StringValue"]
        for queue, sent in run.model.queues.sent.items()
        for message in sent
        if queue.endswith("-dlq")
    }
    if reasons != scenario.parked:
        yield f"parked for {sorted(reasons)}, not {sorted(scenario.parked)}"


def clients_agree(scenario: Scenario, run: Run) -> Iterator[str]:
    """All clients with the same order and key get the same 202. A client with another order under that key gets 422."""
    if not run.facts.answers:
        return
    accepted = {body for status, body in run.facts.answers if status == 202}
    others = [status for status, _ in run.facts.answers if status != 202]
    if len(accepted) != 1 or others != [422] * (len(others) if scenario.name == "api-reused" else 0):
        yield f"answers {run.facts.answers}"
    if scenario.name == "api-reused" and len(others) != 1:
        yield f"answers {run.facts.answers}"


def _offences(run: Run, name: str) -> Iterator[str]:
    for offence in sorted(run.facts.offences):
        if offence.startswith(name + ": "):
            yield offence.removeprefix(name + ": ")


ALWAYS: tuple[Invariant, ...] = (
    one_final_state,
    charged_at_most_once,
    charged_the_total,
    state_tells_the_charge,
    a_zombie_wrote_nothing,
    a_late_claim_is_refused,
    acknowledged_is_done,
    events_keep_their_content,
    the_result_is_the_winners,
    a_second_mail_only_in_its_window,
)
FINALLY: tuple[Invariant, ...] = (
    every_order_ends,
    an_open_order_waits_under_a_name,
    the_customer_was_told,
    no_record_is_stuck,
    every_event_was_sent,
    what_is_parked_deserves_it,
    clients_agree,
)


def broken(scenario: Scenario, run: Run, invariants: tuple[Invariant, ...]) -> list[str]:
    """Return all violations as `invariant: violation`."""
    return [f"{rule.__name__}: {what}" for rule in invariants for what in rule(scenario, run)]
