"""What the page says of what was seen."""

from typing import Any

from lab.console.book import Armed, Book, Entry
from lab.console.look import Sight
from lab.console.view import LASTING_MS, Patience, changes, snapshot, timelines
from lab.demo.lanes import NAIVE, OURS
from lab.demo.sender import Sent
from lab.faults.arm import Injected
from lab.faults.journal import Delivery
from lab.faults.plan import Kind
from lab.tests.console.conftest import charges, done, mails, row, seen, sight

Plain = dict[str, Any]


def shown(at: Sight, now_ms: int = 0, patience: Patience | None = None) -> Plain:
    return snapshot(at, now_ms, patience or Patience())


def cell(now: Plain, lane: str, order: int = 0) -> Plain:
    found: Plain = now["orders"][order]["lanes"][lane]
    return found


def counts(now: Plain, lane: str) -> Plain:
    (found,) = (each["counts"] for each in now["lanes"] if each["name"] == lane)
    return dict(found)


def delivery(lane: str, entry: Entry, *, ended: bool = True, pid: int = 7, receive: int = 1) -> Delivery:
    at_ms = 1_767_225_600_000 + receive * 10_000
    return Delivery(lane, "payment", pid, entry.order_id, "m-1", receive, at_ms, at_ms + 500 if ended else None)


def death(lane: str, entry: Entry) -> Injected:
    return Injected(lane, "payment", entry.order_id, 1, 4, "m-1", Kind.DIE_AFTER, 1_767_225_610_200, 7)


def test_one_order_charged_five_times_here_and_once_there() -> None:
    book = Book()
    entry = book.open(5)
    naive = seen(NAIVE, rows=[done(entry)], charged=charges(entry, 5), mailed=mails(NAIVE, entry, 5))
    ours = seen(OURS, rows=[done(entry)], charged=charges(entry), mailed=mails(OURS, entry))
    now = shown(sight(book, naive, ours))
    assert cell(now, "naive")["wrong"] == ["charged 5 times", "mailed 5 times"]
    assert (counts(now, "naive")["charged_twice"], counts(now, "naive")["charges"]) == (1, 5)
    assert cell(now, "ours")["wrong"] == []
    assert cell(now, "ours")["final"]
    assert (counts(now, "ours")["charged_twice"], counts(now, "ours")["finished"]) == (0, 1)


def test_an_order_between_two_steps_is_not_called_lost_at_once() -> None:
    book, patience = Book(), Patience()
    entry = book.open(1)
    between = sight(book, seen(NAIVE, rows=[row(entry, "placed")]))
    assert cell(shown(between, 0, patience), "naive")["wrong"] == []
    assert cell(shown(between, LASTING_MS - 1, patience), "naive")["wrong"] == []
    assert cell(shown(between, LASTING_MS, patience), "naive")["wrong"] == ["lost: no message is left"]
    assert counts(shown(between, LASTING_MS, patience), "naive")["lost"] == 1


def test_a_charge_of_a_killed_worker_is_no_wrong_while_its_message_comes_back() -> None:
    book, patience = Book(), Patience()
    entry = book.open(1)
    killed = seen(OURS, rows=[row(entry, "placed")], charged=charges(entry), waiting=[entry])
    forgotten = seen(NAIVE, rows=[row(entry, "placed")], charged=charges(entry))
    for now_ms in (0, LASTING_MS, 3 * LASTING_MS):
        now = shown(sight(book, forgotten, killed), now_ms, patience)
    assert cell(now, "ours")["wrong"] == []
    assert cell(now, "naive")["wrong"] == ["charged, and no row says so", "lost: no message is left"]
    assert counts(now, "naive")["unrecorded"] == 1


def test_a_fault_is_armed_until_it_has_struck_in_that_lane() -> None:
    book = Book()
    entry = book.open(1)
    assert [lane["armed"] for lane in shown(sight(book))["lanes"]] == [None, None]
    fault = death("naive", entry)
    book.armed = Armed(Kind.DIE_AFTER, fault.at_ms - 1)
    struck = shown(sight(book, seen(NAIVE, faults=[fault])))
    assert [lane["armed"] for lane in struck["lanes"]] == [None, "die_after"]
    book.armed = Armed(Kind.DIE_AFTER, fault.at_ms + 1)
    assert shown(sight(book, seen(NAIVE, faults=[fault])))["lanes"][0]["armed"] == "die_after"


def test_a_new_page_is_told_everything_and_then_only_what_changed() -> None:
    book = Book(kept=2)
    first, second = book.open(1), book.open(1)
    before = shown(sight(book))
    assert changes(None, before) == {**before, "whole": True}
    assert changes(before, shown(sight(book))) is None
    after = shown(sight(book, ours=seen(OURS, rows=[row(second, "placed")])))
    told = changes(before, after)
    assert told is not None
    assert [order["id"] for order in told["orders"]] == [second.order_id]
    assert set(told) == {"orders"}
    third = book.open(1)
    told = changes(before, shown(sight(book)))
    assert told is not None
    assert told["gone"] == [first.order_id]
    assert [order["id"] for order in told["orders"]] == [third.order_id]
    assert told["total"] == 3


def test_a_timeline_tells_of_death_takeover_and_the_one_charge() -> None:
    book = Book()
    entry = book.open(1)
    entry.sends.append(Sent(entry.order_id, 1_767_225_600_000, "straight to the queue"))
    tries = [delivery("ours", entry, ended=False), delivery("ours", entry, pid=8, receive=2)]
    ours = seen(
        OURS, rows=[done(entry)], charged=charges(entry), mailed=mails(OURS, entry), deliveries=tries,
        faults=[death("ours", entry)],
    )  # fmt: skip
    told = timelines(sight(book, ours=ours), entry.order_id)
    assert told is not None
    kinds = [moment["kind"] for moment in told["lanes"]["ours"]]
    assert {"sent", "delivery", "fault", "death", "takeover", "effect", "record"} <= set(kinds)
    assert kinds[-1] == "end"
    assert [moment["what"] for moment in told["lanes"]["naive"]][-1] == "no such order"
