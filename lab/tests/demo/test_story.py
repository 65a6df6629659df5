"""An order's story holds every sending, delivery, fault, death, takeover, effect and record, in the order of time."""

from typing import Any

from lab.demo.kills import Kill
from lab.demo.sender import Sent
from lab.demo.story import Told, story
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


def test_a_kill_from_outside_is_a_death_only_of_what_was_not_ended() -> None:
    kill = Kill("Payment", (7, 8), {"payment.charge#ord_1": "owner"}, at(3))
    found = told(deliveries=[delivery("payment", 1, 2, pid=7), delivery("payment", 2, None, pid=8)], kills=[kill])
    assert [moment.what for moment in story("ord_1", ONE.email, found) if moment.kind == "death"] == [
        "worker 8 is dead: SIGKILL from outside"
    ]
    assert found.dead_workers == 2
    assert [each.pid for each in found.died] == [8]


def test_others_orders_are_left_out() -> None:
    found = told(
        deliveries=[delivery("order", 1, 2, order="ord_2")],
        faults=[fault("order", Kind.THROTTLED, 1, order="ord_2")],
        witnessed=witnessed(orders=[row(TWO)], charges=[charge(TWO, 1)], mails=[mail(TWO)]),
    )
    assert kinds(found) == []


def end(**said: Any) -> str:
    return story("ord_1", ONE.email, told(witnessed=witnessed(**said)))[-1].what
