"""Each invariant reports its violation. The tests change the state after a clean run of the pipeline."""

import json
from collections.abc import Callable

import pytest

from tests.schedules.dynamodb import Change
from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import plainest, play
from tests.schedules.invariants import ALWAYS, FINALLY, broken
from tests.schedules.model import Call
from tests.schedules.run import LateRequest, Run
from tests.schedules.scenarios import ORDER_ID, SCENARIOS, Scenario
from tests.schedules.services import Mail, Message

RECORD = f"payment.charge#{ORDER_ID}"


def row(run: Run, **changed: str) -> None:
    key = (ORDER_ID,)
    orders = run.model.tables.items["orders"]
    orders[key] = {**orders[key], **{name: {"S": value} for name, value in changed.items()}}


def record(run: Run, **changed: str) -> Change:
    records = run.model.tables.items["idempotency"]
    old = records[(RECORD,)]
    records[(RECORD,)] = {**old, **{name: {"S": value} for name, value in changed.items()}}
    return Change("idempotency", (RECORD,), old, records[(RECORD,)])


def settled_twice(run: Run) -> None:
    old = run.model.tables.items["orders"][(ORDER_ID,)]
    run.facts.changed("Z", [Change("orders", (ORDER_ID,), old, {**old, "state": {"S": "declined"}})])


def charged_twice(run: Run) -> None:
    ledger = run.model.tables.items["ledger"]
    charge = next(item for (kind, _), item in ledger.items() if kind.startswith("charge#"))
    ledger["charge#0", "ch_again"] = charge


def charged_by_another_intent(run: Run) -> None:
    row(run, intent_id="pi_another")


def charged_another_amount(run: Run) -> None:
    ledger = run.model.tables.items["ledger"]
    key, item = next((key, item) for key, item in ledger.items() if key[0].startswith("charge#"))
    ledger[key] = {**item, "body": {"S": json.dumps(json.loads(item["body"]["S"]) | {"amount": 1})}}


def paid_without_charge(run: Run) -> None:
    ledger = run.model.tables.items["ledger"]
    for key in [key for key in ledger if key[0].startswith("charge#")]:
        del ledger[key]


def declined_with_charge(run: Run) -> None:
    row(run, state="declined")


def committed_by_a_zombie(run: Run) -> None:
    claimed = {"owner": {"S": "Y1"}, "status": {"S": "INPROGRESS"}, "uncertain": {"BOOL": False}}
    taken = {**claimed, "owner": {"S": "Z1"}}
    run.facts.changed("Y", [Change("idempotency", ("k",), None, claimed)])
    run.facts.changed("Z", [Change("idempotency", ("k",), claimed, taken)])
    run.facts.changed("Y", [Change("idempotency", ("k",), taken, {**taken, "status": {"S": "COMPLETED"}})])


def order_written_by_a_zombie(run: Run) -> None:
    run.facts.superseded.add("Y")
    old = run.model.tables.items["orders"][(ORDER_ID,)]
    run.facts.changed("Y", [Change("orders", (ORDER_ID,), old, {**old, "mail": {"S": "again"}})])


def acknowledged_in_progress(run: Run) -> None:
    record(run, status="INPROGRESS")
    source = next(source for source in run.sources if source.label == "p")
    message = run.model.queues.sent["payments"][0]
    message.visible_at = 0
    run.model.queues.waiting["payments"].append(message)
    source.take().returned({"batchItemFailures": []})


def one_id_two_contents(run: Run) -> None:
    body = json.loads(run.model.queues.sent["payments"][0].body)
    body["data"]["total"] += 1
    run.facts.sent(Message("x", json.dumps(body), {}, {}, 0))


def another_result(run: Run) -> None:
    run.facts.returned(RECORD, {"state": "declined"})


def mailed_again_out_of_the_blue(run: Run) -> None:
    run.model.rest.mails.append(run.model.rest.mails[0])


def mailed_again_without_knowing(run: Run) -> None:
    first = run.model.rest.mails[0]
    run.faults.append("A+")
    run.facts.uncertain["Z"] = False
    run.model.rest.mails.append(Mail("Z", first.request))


def left_behind(run: Run) -> None:
    row(run, state="placed")


def not_marked_as_mailed(run: Run) -> None:
    row(run, mailed_at="")


def no_receipt(run: Run) -> None:
    run.model.rest.objects.clear()


def no_mail(run: Run) -> None:
    run.model.rest.mails.clear()


def stuck(run: Run) -> None:
    record(run, status="INPROGRESS")


def swallowed_event(run: Run) -> None:
    del run.facts.events[f"{ORDER_ID}/order.paid"]


def parked(run: Run) -> None:
    reason = {"reason": {"DataType": "String", "StringValue": "key_reused"}}
    run.model.queues.put("payments-dlq", {"MessageBody": "{}", "MessageAttributes": reason})


def clients_disagree(run: Run) -> None:
    run.facts.answers += [(202, '{"order_id": "one"}'), (202, '{"order_id": "two"}')]


def late_claim_applied(run: Run) -> None:
    key = {"id": {"S": "payment.charge#ord_1"}}
    overwrite = {
        "TableName": "idempotency",
        "Key": key,
        "UpdateExpression": "SET attempt = :lease",
        "ExpressionAttributeValues": {":lease": {"N": "9"}},
    }
    call = Call("dynamodb", "UpdateItem", overwrite, b"", "")
    run.late += (LateRequest("X", "X", call, b"", frozenset()),)
    run.move("l")


TAMPERS: dict[str, tuple[Callable[[Run], None], ...]] = {
    "one_final_state": (settled_twice,),
    "charged_at_most_once": (charged_twice, charged_by_another_intent),
    "charged_the_total": (charged_another_amount,),
    "state_tells_the_charge": (paid_without_charge, declined_with_charge),
    "a_zombie_wrote_nothing": (committed_by_a_zombie, order_written_by_a_zombie),
    "a_late_claim_is_refused": (late_claim_applied,),
    "acknowledged_is_done": (acknowledged_in_progress,),
    "events_keep_their_content": (one_id_two_contents,),
    "the_result_is_the_winners": (another_result,),
    "a_second_mail_only_in_its_window": (mailed_again_out_of_the_blue, mailed_again_without_knowing),
    "every_order_ends": (left_behind, not_marked_as_mailed),
    "an_open_order_waits_under_a_name": (left_behind,),
    "the_customer_was_told": (no_receipt, no_mail),
    "no_record_is_stuck": (stuck,),
    "every_event_was_sent": (swallowed_event,),
    "what_is_parked_deserves_it": (parked,),
    "clients_agree": (clients_disagree,),
}


def test_every_invariant_has_a_test_of_its_violation() -> None:
    assert set(TAMPERS) == {rule.__name__ for rule in ALWAYS + FINALLY}


@pytest.mark.parametrize(("name", "tamper"), [(name, tamper) for name, found in TAMPERS.items() for tamper in found])
def test_an_invariant_reports_its_violation(
    environment: ExplorerEnvironment, name: str, tamper: Callable[[Run], None]
) -> None:
    scenario: Scenario = SCENARIOS["pipeline"]
    run = play(environment, scenario, [], 0, plainest).run
    assert not broken(scenario, run, ALWAYS + FINALLY)

    tamper(run)

    assert name in {found.partition(":")[0] for found in broken(scenario, run, ALWAYS + FINALLY)}


def test_a_process_that_returns_while_a_thread_of_it_works_is_reported(environment: ExplorerEnvironment) -> None:
    scenario = SCENARIOS["order-batch"]
    run = scenario.start(environment, 0)
    run.move("o")
    process = run.active[0].process
    process.returned, process.result = True, {"batchItemFailures": []}

    run.move("A1")

    assert {found.partition(":")[0] for found in broken(scenario, run, ALWAYS)} == {"acknowledged_is_done"}
