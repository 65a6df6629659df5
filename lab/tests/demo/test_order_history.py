"""The history of an order holds every arrival, delivery, fault, death, takeover, effect and record, by time."""

from typing import Any

from lab.demo.kills import Kill
from lab.demo.order_history import History, order_history
from lab.demo.sender import SentMessage
from lab.faults.plan import Kind
from lab.tests.demo.history_builder import ONE, TWO, at, charge, delivery, fault, mail, observation, row


def history(**other: Any) -> History:
    return History(**({"observation": observation()} | other))


def kinds(history: History) -> list[tuple[str, str]]:
    """Kind and actor of each entry, without the last one."""
    return [(moment.kind, moment.who) for moment in order_history("ord_1", ONE.email, history)[:-1]]


def test_a_death_by_a_fault_is_followed_by_a_takeover() -> None:
    found = history(
        deliveries=[
            delivery("payment", 2, None, pid=7),
            delivery("payment", 20, 21, pid=8, receive=2),
        ],
        faults=[fault("payment", Kind.DIE_AFTER, 2.5, pid=7)],
        sends=[SentMessage("ord_1", at(0), "straight to the queue"), SentMessage("ord_2", at(0), "to the API")],
        observation=observation(charges=[charge(ONE, 20)], mails=[mail(ONE, 22)], orders=[{"order_id": "ord_1"}]),
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
    death = order_history("ord_1", ONE.email, found)[3]
    assert death.what == "worker 7 is dead: die_after at call 2 of payment for ord_1"


def test_a_copy_that_comes_after_the_step_was_done_takes_nothing_over() -> None:
    found = history(
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
    found = history(deliveries=[delivery("payment", 1, 2, pid=7), delivery("payment", 2, None, pid=8)], kills=[kill])
    assert [moment.what for moment in order_history("ord_1", ONE.email, found) if moment.kind == "death"] == [
        "worker 8 is dead: SIGKILL from outside"
    ]
    assert found.dead_workers == 2
    assert [each.pid for each in found.died] == [8]


def test_others_orders_are_left_out() -> None:
    found = history(
        deliveries=[delivery("order", 1, 2, order="ord_2")],
        faults=[fault("order", Kind.THROTTLED, 1, order="ord_2")],
        observation=observation(orders=[row(TWO)], charges=[charge(TWO, 1)], mails=[mail(TWO)]),
    )
    assert kinds(found) == []


def end(**said: Any) -> str:
    return order_history("ord_1", ONE.email, history(observation=observation(**said)))[-1].what
