"""The report of a variant: numbers, failures, and second emails with their causes."""

from typing import Any

from lab.demo.kills import Kill
from lab.demo.order_history import History
from lab.demo.page import page
from lab.demo.variant_report import VariantReport, as_data, report
from lab.faults.plan import Kind
from lab.tests.demo.history_builder import ONE, TWO, at, charge, delivery, fault, mail, observation, row
from lab.variants import NAIVE, THIS_REPO

FAULTS = [
    fault("payment", Kind.DIE_AFTER, 2),
    fault("payment", Kind.DIE_AFTER, 4, order="ord_2", pid=9),
    fault("email", Kind.SLOW, 5),
]


def this_repo(second_mails: Any = (), violations: Any = (), **history: Any) -> VariantReport:
    found = History(**({"observation": observation()} | history))
    return report(THIS_REPO, [ONE, TWO], found, second_mails=second_mails, violations=violations)


def test_a_variant_that_did_each_order_once_is_as_promised() -> None:
    found = this_repo()
    assert found.as_promised
    assert found.failed_orders == 0
    assert set(found.counts.values()) == {0}
    assert [(each.charges, each.mails, each.failures) for each in found.effects] == [(1, 1, ()), (0, 1, ())]


def test_workers_that_died_are_counted_once_and_what_they_held_is_cut_short() -> None:
    found = this_repo(
        faults=FAULTS,
        kills=[Kill("Payment", (20, 21), {}, at(6))],
        deliveries=[delivery("payment", 1, None), delivery("payment", 1, None, order="ord_2"), delivery("email", 5, 6)],
    )
    assert (found.dead_workers, found.deliveries, found.cut_short) == (4, 3, 2)


def test_the_page_shows_the_worst_order_of_a_report() -> None:
    run = {"seed": 1, "faults_percent": 6, "seconds": 90, "remarks": [], "versions": {}}
    found = this_repo(faults=FAULTS)

    text = page(as_data(run, [found]))

    assert f"<code>{found.worst}</code>" in text


TWICE = observation(mails=[mail(ONE, 5), mail(ONE, 21), mail(TWO)])


def why(**history: Any) -> str:
    """What explains that ord_1 was mailed after 5 s, and again after 21."""
    found = this_repo(second_mails=["ord_1"], observation=TWICE, **history)
    assert found.counts["mailed_twice"] == 1
    assert found.as_promised is ("ord_1" in found.explained_emails)
    assert found.failed_orders == (0 if found.as_promised else 1)
    return found.explained_emails.get("ord_1", "")


AGAIN = delivery("email", 20, 22, pid=8, receive=2)


def test_a_second_email_is_explained_by_the_death_of_the_worker_that_sent_the_first() -> None:
    assert (
        why(
            faults=[fault("email", Kind.DIE_AFTER, 4.9, order="ord_2", pid=7)],
            deliveries=[delivery("email", 4, None, pid=7), AGAIN],
        )
        == "worker 7 died: die_after at call 2 of email for ord_2"
    )


def test_a_second_email_is_explained_by_an_answer_that_never_came() -> None:
    found = why(faults=[fault("email", Kind.ANSWER_LOST, 5)], deliveries=[delivery("email", 4, 6, failed=True), AGAIN])
    assert found == "answer_lost at call 2 of email"


def test_a_second_email_is_explained_by_a_zombie() -> None:
    stalled = [delivery("email", 1, 22, pid=7), delivery("email", 4, 6, pid=8)]
    assert why(faults=[fault("email", Kind.STALLED, 1.5)], deliveries=stalled) == "stalled at call 2 of email"


def test_of_three_mails_each_must_be_explained() -> None:
    found = this_repo(
        second_mails=["ord_1"],
        observation=observation(mails=[mail(ONE, 5), mail(ONE, 21), mail(ONE, 40), mail(TWO)]),
        faults=[fault("email", Kind.DIE_AFTER, 5, pid=7)],
        deliveries=[delivery("email", 4, None), delivery("email", 20, 22, pid=8), delivery("email", 39, 41, pid=9)],
    )
    assert found.explained_emails == {}
    assert found.violations == ["ord_1: emailed twice, and no cause is known"]
    assert not found.as_promised


def test_an_explained_mail_excuses_nothing_else() -> None:
    found = this_repo(
        second_mails=["ord_1"],
        observation=observation(
            charges=[charge(ONE, 1), charge(ONE, 2, "ch_3")], mails=[mail(ONE, 5), mail(ONE, 21), mail(TWO)]
        ),
        faults=[fault("email", Kind.DIE_AFTER, 5)],
        deliveries=[delivery("email", 4, None), AGAIN],
    )
    assert found.explained_emails["ord_1"]
    assert found.unexplained_failures["mailed_twice"] == []
    assert (found.as_promised, found.failed_orders, found.worst) == (False, 1, "ord_1")


def test_a_fault_of_another_step_or_order_explains_no_second_email() -> None:
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


def test_two_emails_without_an_explanation_are_a_failure() -> None:
    found = this_repo(observation=TWICE)
    assert not found.as_promised
    assert found.failed_orders == 1


def test_a_violation_makes_a_variant_not_as_promised() -> None:
    assert not this_repo(violations=["ord_1: its receipt is not in the bucket"]).as_promised


def test_another_variant_is_checked_by_its_own_addresses() -> None:
    found = report(NAIVE, [ONE], History(observation(orders=[row(ONE)])))
    assert found.failures["not_mailed"] == ("ord_1",)
