"""What the page says of what was seen."""

from typing import Any

from lab.console.page_state import LASTING_MS, SuspicionTimer, changes, page_state, timelines
from lab.console.sent_orders import Armed, SentOrder, SentOrders
from lab.console.snapshot import Snapshot
from lab.demo.sender import SentMessage
from lab.faults.fault_table import InjectedFault
from lab.faults.journal import Delivery
from lab.faults.plan import Kind
from lab.tests.console.conftest import charges, done, mails, row, seen, snapshot
from lab.variants import NAIVE, THIS_REPO

Plain = dict[str, Any]


def shown(at: Snapshot, now_ms: int = 0, suspicions: SuspicionTimer | None = None) -> Plain:
    return page_state(at, now_ms, suspicions or SuspicionTimer())


def cell(now: Plain, variant: str, order: int = 0) -> Plain:
    found: Plain = now["orders"][order]["variants"][variant]
    return found


def counts(now: Plain, variant: str) -> Plain:
    (found,) = (each["counts"] for each in now["variants"] if each["name"] == variant)
    return dict(found)


def delivery(variant: str, entry: SentOrder, *, ended: bool = True, pid: int = 7, receive: int = 1) -> Delivery:
    at_ms = 1_767_225_600_000 + receive * 10_000
    return Delivery(variant, "payment", pid, entry.order_id, "m-1", receive, at_ms, at_ms + 500 if ended else None)


def death(variant: str, entry: SentOrder) -> InjectedFault:
    return InjectedFault(variant, "payment", entry.order_id, 1, 4, "m-1", Kind.DIE_AFTER, 1_767_225_610_200, 7)


def test_an_order_charged_five_times_is_shown() -> None:
    sent_orders = SentOrders()
    entry = sent_orders.add(5)
    naive = seen(NAIVE, rows=[done(entry)], charged=charges(entry, 5), mailed=mails(NAIVE, entry, 5))
    this_repo = seen(THIS_REPO, rows=[done(entry)], charged=charges(entry), mailed=mails(THIS_REPO, entry))
    now = shown(snapshot(sent_orders, naive, this_repo))
    assert cell(now, "naive")["wrong"] == ["charged 5 times", "emailed 5 times"]
    assert (counts(now, "naive")["charged_twice"], counts(now, "naive")["charges"]) == (1, 5)
    assert cell(now, "this-repo")["wrong"] == []
    assert cell(now, "this-repo")["final"]
    assert (counts(now, "this-repo")["charged_twice"], counts(now, "this-repo")["finished"]) == (0, 1)


def test_an_order_between_two_steps_is_not_called_lost_at_once() -> None:
    sent_orders, suspicions = SentOrders(), SuspicionTimer()
    entry = sent_orders.add(1)
    between = snapshot(sent_orders, seen(NAIVE, rows=[row(entry, "placed")]))
    assert cell(shown(between, 0, suspicions), "naive")["wrong"] == []
    assert cell(shown(between, LASTING_MS - 1, suspicions), "naive")["wrong"] == []
    assert cell(shown(between, LASTING_MS, suspicions), "naive")["wrong"] == ["lost: no message left"]
    assert counts(shown(between, LASTING_MS, suspicions), "naive")["lost"] == 1


def test_a_charge_of_a_killed_worker_is_no_wrong_while_its_message_comes_back() -> None:
    sent_orders, suspicions = SentOrders(), SuspicionTimer()
    entry = sent_orders.add(1)
    killed = seen(THIS_REPO, rows=[row(entry, "placed")], charged=charges(entry), waiting=[entry])
    forgotten = seen(NAIVE, rows=[row(entry, "placed")], charged=charges(entry))
    for now_ms in (0, LASTING_MS, 3 * LASTING_MS):
        now = shown(snapshot(sent_orders, forgotten, killed), now_ms, suspicions)
    assert cell(now, "this-repo")["wrong"] == []
    assert cell(now, "naive")["wrong"] == ["charged, not recorded", "lost: no message left"]
    assert counts(now, "naive")["unrecorded"] == 1


def test_a_fault_is_armed_until_it_has_struck_in_that_variant() -> None:
    sent_orders = SentOrders()
    entry = sent_orders.add(1)
    assert [variant["armed"] for variant in shown(snapshot(sent_orders))["variants"]] == [None, None]
    fault = death("naive", entry)
    sent_orders.armed = Armed(Kind.DIE_AFTER, fault.at_ms - 1)
    applied = shown(snapshot(sent_orders, seen(NAIVE, faults=[fault])))
    assert [variant["armed"] for variant in applied["variants"]] == [None, "die_after"]
    sent_orders.armed = Armed(Kind.DIE_AFTER, fault.at_ms + 1)
    assert shown(snapshot(sent_orders, seen(NAIVE, faults=[fault])))["variants"][0]["armed"] == "die_after"


def test_a_new_page_is_told_everything_and_then_only_what_changed() -> None:
    sent_orders = SentOrders(limit=2)
    first, second = sent_orders.add(1), sent_orders.add(1)
    before = shown(snapshot(sent_orders))
    assert changes(None, before) == {**before, "whole": True}
    assert changes(before, shown(snapshot(sent_orders))) is None
    after = shown(snapshot(sent_orders, this_repo=seen(THIS_REPO, rows=[row(second, "placed")])))
    told = changes(before, after)
    assert told is not None
    assert [order["id"] for order in told["orders"]] == [second.order_id]
    assert set(told) == {"orders"}
    third = sent_orders.add(1)
    told = changes(before, shown(snapshot(sent_orders)))
    assert told is not None
    assert told["gone"] == [first.order_id]
    assert [order["id"] for order in told["orders"]] == [third.order_id]
    assert told["total"] == 3


def test_a_timeline_tells_of_death_takeover_and_the_one_charge() -> None:
    sent_orders = SentOrders()
    entry = sent_orders.add(1)
    entry.sends.append(SentMessage(entry.order_id, 1_767_225_600_000, "straight to the queue"))
    tries = [delivery("this-repo", entry, ended=False), delivery("this-repo", entry, pid=8, receive=2)]
    this_repo = seen(
        THIS_REPO, rows=[done(entry)], charged=charges(entry), mailed=mails(THIS_REPO, entry), deliveries=tries,
        faults=[death("this-repo", entry)],
    )  # fmt: skip
    told = timelines(snapshot(sent_orders, this_repo=this_repo), entry.order_id)
    assert told is not None
    kinds = [moment["kind"] for moment in told["variants"]["this-repo"]]
    assert {"sent", "delivery", "fault", "death", "takeover", "effect", "record"} <= set(kinds)
    assert kinds[-1] == "end"
    assert [moment["what"] for moment in told["variants"]["naive"]][-1] == "no order row"
