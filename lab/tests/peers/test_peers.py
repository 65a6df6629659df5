"""The peers are no straw men, docs/peers.md tells what they really do, and we withstand what breaks them."""

import re
from collections import Counter

import pytest
from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import parse, plainest, play, replay
from tests.schedules.faults import Fault
from tests.schedules.invariants import broken, charges_of, orders_of
from tests.schedules.model import Call
from tests.schedules.run import Run
from tests.schedules.scenarios import ORDER_ID

from lab.peers.measurement import TITLES, WORDS, Measurement
from lab.peers.outcome import KINDS, OUTCOME
from lab.peers.page import page, shown_schedules
from lab.peers.report import PAGE
from lab.peers.scenarios import COMPARED, PEERS, THIS_REPO

AFFORDABLE = ("conditional_put", "conditional_put-late")  # seconds; the others take up to a minute


def published() -> list[Measurement]:
    """What docs/peers.md says, as it was measured."""
    text = PAGE.read_text()
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = next((name for name, title in TITLES.items() if title == cells[0]), None)
        if name is not None:
            it = Measurement(name + ("-late" if cells[1] == "after a day" else ""), int(cells[2]), int(cells[3]))
            it.counts = +Counter({kind: int(count) for kind, count in zip(KINDS, cells[4:], strict=True)})
            found[it.scenario] = it
    heading = r"^### [^\n]*: ([^\n:]+)\n\n`make replay-peer SCHEDULE='(.+)'`$"
    for words, schedule in re.findall(heading, text, re.MULTILINE):
        kind = next(kind for kind in KINDS if WORDS[kind] == words)
        found[schedule.partition(":")[0]].shortest[kind] = schedule
    return [found[name] for name in COMPARED]


SHOWN = [(kind, schedule) for (_, kind), schedule in shown_schedules(published()).items()]


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_pays_exactly_once_when_nothing_goes_wrong_and_its_copy_does_nothing(
    place: ExplorerEnvironment, name: str
) -> None:
    played = play(place, COMPARED[name], [], 0, plainest)

    assert played.ended
    assert not played.broken
    assert [charge["paid"] for charge in charges_of(played.run)[ORDER_ID]] == [True]
    assert orders_of(played.run)[ORDER_ID]["state"] == {"S": "paid"}
    assert len(played.run.model.queues.sent["emails"]) == 1
    assert not played.run.model.queues.waiting["payments"]
    assert played.run.started == 2


@pytest.mark.parametrize(("kind", "schedule"), SHOWN)
def test_a_schedule_of_the_page_fails_each_time(place: ExplorerEnvironment, kind: str, schedule: str) -> None:
    first, second = replay(place, schedule, COMPARED), replay(place, schedule, COMPARED)

    assert kind in {what.partition(":")[0] for what in first[1]}
    assert first == second


def test_the_page_is_up_to_date(place: ExplorerEnvironment) -> None:
    """Run `make peers` where this fails."""
    assert page(place, published()) == PAGE.read_text()


# The same mishap in our code: other requests, the same part of the work.


def part(call: Call) -> str:
    """What a request is for."""
    if call.service == "provider":
        return "confirm" if call.operation.endswith("/confirm") else "create"
    if '"orders"' in call.raw.decode():
        return "record"
    return "claim" if call.service == "dynamodb" else call.operation


def mishap(place: ExplorerEnvironment, schedule: str) -> tuple[str, Fault]:
    """Which part of the work a schedule's fault strikes, and how."""
    scenario, moves = parse(schedule, COMPARED)
    at = next(number for number, move in enumerate(moves) if not move.isalnum())
    struck: list[str] = []

    def stop(run: Run, _: list[str], __: list[str]) -> None:
        name = moves[at].rstrip("".join(fault.value for fault in Fault))
        threads = [thread for it in run.active for thread in it.process.threads]
        struck.append(part(next(thread.parked_at for thread in threads if thread.name == name)))

    play(place, scenario, moves[:at], 1, stop)
    return struck[0], Fault(moves[at][-1])


@pytest.mark.parametrize("late", ["", "-late"])
@pytest.mark.parametrize("schedule", [schedule for _, schedule in SHOWN])
def test_a_fault_that_breaks_a_peer_leaves_this_repository_order_paid_once(
    place: ExplorerEnvironment, schedule: str, late: str
) -> None:
    struck, fault = mishap(place, schedule)

    def choose(run: Run, _: list[str], possible: list[str]) -> str:
        for it in run.active:
            for strand in it.process.parked:
                move = strand.name + fault.value
                if move in possible and isinstance(strand.parked_at, Call) and part(strand.parked_at) == struck:
                    return move
        return possible[0]

    played = play(place, COMPARED[THIS_REPO + late], [], 1, choose)

    assert [met[-1] for met in played.run.faults] == [fault.value]
    assert not played.broken
    assert sum(bool(charge["paid"]) for charge in charges_of(played.run)[ORDER_ID]) == 1
    assert orders_of(played.run)[ORDER_ID]["state"] == {"S": "paid"}


# The witnesses notice.


def charged_again(run: Run) -> None:
    ledger = run.model.tables.items["ledger"]
    ledger["charge#0", "ch_again"] = next(item for (kind, _), item in ledger.items() if kind.startswith("charge#"))


def not_marked(run: Run) -> None:
    rows = run.model.tables.items["orders"]
    rows[(ORDER_ID,)] = {**rows[(ORDER_ID,)], "state": {"S": "placed"}}


def never_charged(run: Run) -> None:
    not_marked(run)
    ledger = run.model.tables.items["ledger"]
    for key in [key for key in ledger if key[0].startswith("charge#")]:
        del ledger[key]


TAMPERS = {"double_charge": charged_again, "charged_not_recorded": not_marked, "lost": never_charged}


@pytest.mark.parametrize("kind", [rule.__name__ for rule in OUTCOME])
def test_each_rule_finds_its_own_failure_only(place: ExplorerEnvironment, kind: str) -> None:
    run = play(place, COMPARED[THIS_REPO], [], 0, plainest).run
    assert not broken(COMPARED[THIS_REPO], run, OUTCOME)

    TAMPERS[kind](run)

    assert {what.partition(":")[0] for what in broken(COMPARED[THIS_REPO], run, OUTCOME)} == {kind}


def test_a_message_in_a_dlq_is_not_lost(place: ExplorerEnvironment) -> None:
    run = play(place, COMPARED[THIS_REPO], [], 0, plainest).run
    never_charged(run)

    run.model.queues.put("payments-dlq", {"MessageBody": "{}"})

    assert not broken(COMPARED[THIS_REPO], run, OUTCOME)
