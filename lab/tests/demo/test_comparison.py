"""A lane's report: judged by witnesses, every fault found again, a second mail explained by what caused it."""

from typing import Any

from lab.demo.comparison import LaneReport, report
from lab.demo.kills import Kill
from lab.demo.lanes import NAIVE, OURS
from lab.demo.story import Told
from lab.faults.plan import Kind
from lab.tests.demo.told import ONE, TWO, at, charge, delivery, fault, mail, row, witnessed

FAULTS = [
    fault("payment", Kind.DIE_AFTER, 2),
    fault("payment", Kind.DIE_AFTER, 4, order="ord_2", pid=9),
    fault("email", Kind.SLOW, 5),
]


def ours(second_mails: Any = (), violations: Any = (), **told: Any) -> LaneReport:
    found = Told(**({"witnessed": witnessed()} | told))
    return report(OURS, [ONE, TWO], found, second_mails=second_mails, violations=violations)


def test_a_lane_that_did_each_order_once_kept_its_promise() -> None:
    found = ours()
    assert found.kept
    assert found.wronged == 0
    assert set(found.counts.values()) == {0}
    assert [(each.charges, each.mails, each.wrongs) for each in found.effects] == [(1, 1, ()), (0, 1, ())]


def test_workers_that_died_are_counted_once_and_what_they_held_is_cut_short() -> None:
    found = ours(
        faults=FAULTS,
        kills=[Kill("Payment", (20, 21), {}, at(6))],
        deliveries=[delivery("payment", 1, None), delivery("payment", 1, None, order="ord_2"), delivery("email", 5, 6)],
    )
    assert (found.dead_workers, found.deliveries, found.cut_short) == (4, 3, 2)


TWICE = witnessed(mails=[mail(ONE, 5), mail(ONE, 21), mail(TWO)])


def why(**told: Any) -> str:
    """What explains that ord_1 was mailed after 5 s, and again after 21."""
    found = ours(second_mails=["ord_1"], witnessed=TWICE, **told)
    assert found.counts["mailed_twice"] == 1
    assert found.kept is ("ord_1" in found.explained)
    assert found.wronged == (0 if found.kept else 1)
    return found.explained.get("ord_1", "")


AGAIN = delivery("email", 20, 22, pid=8, receive=2)


def test_a_second_mail_is_explained_by_the_death_of_the_worker_that_sent_the_first() -> None:
    assert (
        why(
            faults=[fault("email", Kind.DIE_AFTER, 4.9, order="ord_2", pid=7)],
            deliveries=[delivery("email", 4, None, pid=7), AGAIN],
        )
        == "worker 7 died: die_after at call 2 of email for ord_2"
    )


def test_a_second_mail_is_explained_by_an_answer_that_never_came() -> None:
    found = why(faults=[fault("email", Kind.ANSWER_LOST, 5)], deliveries=[delivery("email", 4, 6, failed=True), AGAIN])
    assert found == "answer_lost at call 2 of email"


def test_a_second_mail_is_explained_by_a_zombie() -> None:
    stalled = [delivery("email", 1, 22, pid=7), delivery("email", 4, 6, pid=8)]
    assert why(faults=[fault("email", Kind.STALLED, 1.5)], deliveries=stalled) == "stalled at call 2 of email"


def test_of_three_mails_each_must_be_explained() -> None:
    found = ours(
        second_mails=["ord_1"],
        witnessed=witnessed(mails=[mail(ONE, 5), mail(ONE, 21), mail(ONE, 40), mail(TWO)]),
        faults=[fault("email", Kind.DIE_AFTER, 5, pid=7)],
        deliveries=[delivery("email", 4, None), delivery("email", 20, 22, pid=8), delivery("email", 39, 41, pid=9)],
    )
    assert found.explained == {}
    assert found.violations == ["ord_1: mailed twice, and nothing says why"]
    assert not found.kept


def test_an_explained_mail_excuses_nothing_else() -> None:
    found = ours(
        second_mails=["ord_1"],
        witnessed=witnessed(
            charges=[charge(ONE, 1), charge(ONE, 2, "ch_3")], mails=[mail(ONE, 5), mail(ONE, 21), mail(TWO)]
        ),
        faults=[fault("email", Kind.DIE_AFTER, 5)],
        deliveries=[delivery("email", 4, None), AGAIN],
    )
    assert found.explained["ord_1"]
    assert found.unpromised["mailed_twice"] == []
    assert (found.kept, found.wronged, found.worst) == (False, 1, "ord_1")


def test_what_befell_another_step_or_another_order_or_later_explains_no_mail() -> None:
    found = why(
        faults=[
            fault("payment", Kind.DIE_AFTER, 5),
            fault("email", Kind.ANSWER_LOST, 5, order="ord_2"),
            fault("email", Kind.THROTTLED, 5),
            fault("email", Kind.ANSWER_LOST, 30, pid=9),
        ],
        deliveries=[delivery("email", 4, 6), AGAIN, delivery("email", 29, None, pid=9)],
    )
    assert found == ""


def test_two_mails_that_no_record_explains_are_a_wrong() -> None:
    found = ours(witnessed=TWICE)
    assert not found.kept
    assert found.wronged == 1


def test_a_violation_breaks_the_promise_whatever_the_counts_say() -> None:
    assert not ours(violations=["ord_1: its receipt is not in the bucket"]).kept


def test_another_lane_is_judged_by_its_own_addresses() -> None:
    found = report(NAIVE, [ONE], Told(witnessed(orders=[row(ONE)])))
    assert found.wrongs["not_mailed"] == ("ord_1",)
