"""The page shows every number and every fault, needs nothing from elsewhere, and can be read without colours."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from lab.demo.comparison import WRONGS, LaneReport, as_data, report
from lab.demo.lanes import NAIVE, OURS
from lab.demo.page import SIGNS, page
from lab.demo.plot import effects_plot
from lab.demo.story import Told
from lab.faults.plan import Kind
from lab.tests.demo.told import ONE, TWO, charge, delivery, fault, mail, witnessed

RUN = {"seed": 7, "faults_percent": 6, "seconds": 90, "remarks": ["a <remark>"], "versions": {"python": "3.13.1"}}
TWICE = witnessed(mails=[mail(ONE), mail(ONE), mail(TWO)])


def lanes() -> list[LaneReport]:
    told = Told(
        TWICE,
        faults=[fault("email", Kind.DIE_AFTER, 5), fault("payment", Kind.THROTTLED, 2)],
        deliveries=[delivery("email", 4, None)],
    )
    naive = Told(witnessed(charges=[charge(ONE, 1), charge(ONE, 2, "ch_3")], mails=[], waiting=["ord_1"]))
    return [report(OURS, [ONE, TWO], told, second_mails=["ord_1"]), report(NAIVE, [ONE, TWO], naive)]


@pytest.fixture(scope="module")
def shown() -> str:
    return page(as_data(RUN, lanes()))


class Tags(HTMLParser):
    """Opens and closes each tag in its turn."""

    EMPTY = ("meta", "line", "rect", "circle", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def test_it_is_whole_and_asks_nobody_for_anything(shown: str) -> None:
    tags = Tags()
    tags.feed(shown)
    assert tags.open == []
    assert tags.addresses == []
    assert not re.search(r"https?:|url\(|@import|<script", shown)


def test_it_is_made_for_dark_rooms_and_small_screens(shown: str) -> None:
    assert "prefers-color-scheme: dark" in shown
    assert 'name="viewport" content="width=device-width' in shown


def test_each_fault_is_on_it_with_its_count_a_lane(shown: str) -> None:
    for words in ("email: die_after", "payment: throttled"):
        assert f'<tr><td>{words}</td><td class="n">1</td><td class="n">0</td></tr>' in shown


def test_a_number_that_is_wrong_has_a_sign_and_not_just_a_colour(shown: str) -> None:
    def row(name: str) -> str:
        return next(line for line in shown.split("<tr>") if line.startswith(f"<td>{WRONGS[name]}</td>"))

    assert "✓ 0" in row("charged_twice")
    assert "✗ 1" in row("charged_twice")
    assert "○ 1" in row("mailed_twice")


def test_a_lane_that_broke_its_promise_says_so_in_words(shown: str) -> None:
    assert "✓ promise kept" in shown
    assert "✗ 2 orders wronged" in shown


def test_a_second_mail_of_ours_is_named_with_its_cause(shown: str) -> None:
    assert "<code>ord_1</code>: worker 7 died: die_after at call 2 of email for ord_1" in shown


def test_the_worst_order_of_each_lane_has_its_story(shown: str) -> None:
    assert shown.count('<table class="story">') == 2
    for kind in ("delivery", "fault", "death", "effect", "end"):
        assert SIGNS[kind] in shown


def test_what_comes_from_elsewhere_is_text_and_never_a_tag() -> None:
    data = as_data(RUN, [report(OURS, [ONE, TWO], Told(witnessed()), violations=["<b>bad</b>"])])
    assert "<b>" not in page(data)
    assert "a &lt;remark&gt;" in page(data)


def test_an_explained_mail_hides_nothing_else_that_is_wrong_with_the_order() -> None:
    told = Told(
        witnessed(charges=[charge(ONE, 1), charge(ONE, 2, "ch_3")], mails=[mail(ONE), mail(ONE), mail(TWO)]),
        faults=[fault("email", Kind.DIE_AFTER, 5)],
        deliveries=[delivery("email", 4, None)],
    )
    drawn = page(as_data(RUN, [report(OURS, [ONE, TWO], told, second_mails=["ord_1"])]))
    assert '<span class="bad">✗ charged twice</span>' in drawn
    assert '<td class="n bad">✗ 1</td>' in drawn
    assert "<div>1 charged twice, 1 mailed twice, as the promise says, and named</div>" in drawn


def test_a_second_mail_that_nothing_explains_is_promised_nowhere() -> None:
    drawn = page(as_data(RUN, [report(OURS, [ONE, TWO], Told(TWICE), second_mails=["ord_1"])]))
    assert '<span class="bad">✗ mailed twice</span>' in drawn
    assert "as the promise says, and named" not in drawn
    assert "ord_1: mailed twice, and nothing says why" in drawn


def column(**order: Any) -> str:
    return effects_plot({"effects": [{"order_id": "ord_1", "charges": 1, "mails": 1, "pays": True} | order]} | LANE)


LANE: dict[str, Any] = {"unpromised": {"mailed_twice": ["ord_1"]}}


@pytest.mark.parametrize(
    ("order", "classes"),
    [
        ({}, {"ok": 2}),
        ({"charges": 3}, {"ok": 2, "extra": 4}),  # each a square and a cross
        ({"charges": 0}, {"ok": 1, "missing": 1}),
        ({"charges": 0, "pays": False}, {"ok": 1}),
        ({"mails": 2}, {"ok": 2, "extra": 2}),
        ({"mails": 0}, {"ok": 1, "missing": 1}),
    ],
)
def test_a_column_has_a_mark_for_each_effect(order: dict[str, Any], classes: dict[str, int]) -> None:
    drawn = column(**order)
    assert {name: drawn.count(f'class="{name}"') for name in ("ok", "extra", "missing") if name in drawn} == classes
    assert f"{order.get('charges', 1)} charges, {order.get('mails', 1)} mails" in drawn


def test_a_second_mail_that_the_promise_names_has_a_mark_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANE, "unpromised", {"mailed_twice": []})
    assert 'class="told"' in column(mails=2)
    assert 'class="extra"' not in column(mails=2)
