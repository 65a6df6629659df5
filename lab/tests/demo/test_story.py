"""An order's story holds every sending, delivery, fault, death, takeover, effect and record, in the order of time."""

from typing import Any

from lab.demo.kills import Kill
from lab.demo.sender import Sent
from lab.demo.story import SAYS, Told, story
from lab.faults.plan import Kind
from lab.tests.demo.told import ONE, TWO, at, charge, delivery, fault, mail, row, witnessed


def told(**other: Any) -> Told:
    return Told(**({"witnessed": witnessed()} | other))


def kinds(told: Told) -> list[tuple[str, str]]:
    """Of each moment the kind and who, without what the witnesses found in the end."""
    return [(moment.kind, moment.who) for moment in story("ord_1", ONE.email, told)[:-1]]


def test_a_death_by_a_fault_is_followed_by_a_takeover() -> None:
    found = told(
        deliveries=[
            delivery("payment", 2, None, pid=7),
            delivery("payment", 20, 21, pid=8, receive=2),
        ],
        faults=[fault("payment", Kind.DIE_AFTER, 2.5, pid=7)],
        sends=[Sent("ord_1", at(0), "straight to the queue"), Sent("ord_2", at(0), "to the API")],
        witnessed=witnessed(charges=[charge(ONE, 20)], mails=[mail(ONE, 22)], orders=[{"order_id": "ord_1"}]),
    )
    assert kinds(found) == [
        ("sent", "client"),
        ("delivery", "payment"),
        ("fault", "payment"),
        ("death", "payment"),
        ("takeover", "payment"),
        ("effect", "ledger"),
        ("delivery", "payment"),
        ("effect", "mailbox"),
    ]
    death = story("ord_1", ONE.email, found)[3]
    assert death.what == "worker 7 is dead: die_after at call 2 of payment for ord_1"


def test_a_copy_that_comes_after_the_step_was_done_takes_nothing_over() -> None:
    found = told(
        deliveries=[
            delivery("payment", 2, None, pid=7),
            delivery("payment", 20, 21, pid=8, receive=2),
            delivery("payment", 30, 31, pid=9),
        ],
        faults=[fault("payment", Kind.DIE_AFTER, 2.5, pid=7)],
    )
    assert [kind for kind, _ in kinds(found)].count("takeover") == 1


def test_a_worker_that_dies_by_the_fault_of_a_message_beside_takes_this_one_with_it() -> None:
    found = told(
        deliveries=[delivery("email", 2, None, pid=7)],
        faults=[fault("email", Kind.DIE_BEFORE, 2.5, order="ord_2", pid=7)],
    )
    assert ("fault", "email") not in kinds(found)
    (death,) = (moment for moment in story("ord_1", ONE.email, found) if moment.kind == "death")
    assert death.what.endswith("for ord_2")


def test_a_kill_from_outside_is_a_death_only_of_what_was_not_ended() -> None:
    kill = Kill("Payment", (7, 8), {"payment.charge#ord_1": "owner"}, at(3))
    found = told(deliveries=[delivery("payment", 1, 2, pid=7), delivery("payment", 2, None, pid=8)], kills=[kill])
    assert [moment.what for moment in story("ord_1", ONE.email, found) if moment.kind == "death"] == [
        "worker 8 is dead: SIGKILL from outside"
    ]
    assert found.dead_workers == 2
    assert [each.pid for each in found.died] == [8]


def test_a_zombie_ends_after_the_one_that_took_over() -> None:
    found = told(
        deliveries=[delivery("email", 1, 12, pid=7), delivery("email", 8, 9, pid=8, receive=2)],
        faults=[fault("email", Kind.STALLED, 1.2)],
        witnessed=witnessed(charges=[], mails=[], orders=[]),
    )
    whole = story("ord_1", ONE.email, found)
    assert [moment.kind for moment in whole] == ["delivery", "fault", "takeover", "delivery", "delivery", "end"]
    assert whole[-2].what == "worker 7 is done with it"


def test_two_messages_in_one_dead_hand_are_one_death_and_no_takeover() -> None:
    found = told(
        deliveries=[delivery("order", 1, None, message="m-1"), delivery("order", 1, None, message="m-2")],
        faults=[fault("order", Kind.DIE_BEFORE, 2)],
        witnessed=witnessed(charges=[], mails=[], orders=[]),
    )
    assert [kind for kind, _ in kinds(found)] == ["delivery", "delivery", "fault", "death"]


def test_a_copy_beside_a_running_worker_takes_nothing_over() -> None:
    found = told(
        deliveries=[delivery("order", 1, None, message="m-1"), delivery("order", 2, 3, pid=8, message="m-2")],
        faults=[fault("order", Kind.DIE_BEFORE, 4)],
    )
    assert "takeover" not in [kind for kind, _ in kinds(found)]


def test_a_charge_comes_after_the_delivery_of_the_same_second() -> None:
    found = told(deliveries=[delivery("payment", 3.4, 3.6)], witnessed=witnessed(charges=[charge(ONE, 3)], mails=[]))
    assert [kind for kind, _ in kinds(found) if kind != "record"] == ["delivery", "effect", "delivery"]


def test_a_row_of_ours_has_the_time_of_each_state() -> None:
    times = {"requested_at": "2026-09-21T13:33:21+00:00", "paid_at": "2026-09-21T13:33:25+00:00"}
    found = told(witnessed=witnessed(orders=[row(ONE, **times)], charges=[], mails=[]))
    assert [moment.what for moment in story("ord_1", ONE.email, found) if moment.kind == "record"] == [
        "requested",
        "paid",
        "mailed",
    ]


def test_others_orders_are_left_out() -> None:
    found = told(
        deliveries=[delivery("order", 1, 2, order="ord_2")],
        faults=[fault("order", Kind.THROTTLED, 1, order="ord_2")],
        witnessed=witnessed(orders=[row(TWO)], charges=[charge(TWO, 1)], mails=[mail(TWO)]),
    )
    assert kinds(found) == []


def end(**said: Any) -> str:
    return story("ord_1", ONE.email, told(witnessed=witnessed(**said)))[-1].what


def test_the_end_says_what_the_witnesses_found() -> None:
    assert end() == "paid, mailed"
    assert end(orders=[]) == "no such order"
    assert end(orders=[{"order_id": "ord_1", "state": "placed"}], waiting=["ord_1"]) == (
        "placed, not mailed; a message is still on its way"
    )
    assert end(parked=["ord_1"]) == "paid, mailed; a message is in a DLQ"


def test_every_kind_of_fault_has_words() -> None:
    assert set(SAYS) == set(Kind)
    assert all("{call}" in words for words in SAYS.values())
