"""What a terminal shows: each lane's numbers, a sign at what is wrong, and a verdict."""

import io
from typing import Any

from rich.console import Console

from lab.demo.comparison import report
from lab.demo.lanes import NAIVE, OURS
from lab.demo.report import show_audit, show_comparison
from lab.demo.story import Told
from lab.faults.plan import Kind
from lab.tests.demo.told import ONE, TWO, charge, delivery, fault, mail, witnessed

TWICE = witnessed(mails=[mail(ONE, 5), mail(ONE, 21), mail(TWO)])


def shown(show: Any, *arguments: Any) -> str:
    out = io.StringIO()
    show(Console(file=out, width=120, no_color=True), *arguments)
    return out.getvalue()


def row(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"│ {name} "))
    return [cell.strip() for cell in line.strip("│").split("│")[1:]]


def test_the_lanes_stand_beside_each_other() -> None:
    told = Told(TWICE, faults=[fault("email", Kind.DIE_AFTER, 5)], deliveries=[delivery("email", 4, None)])
    ours = report(OURS, [ONE, TWO], told, second_mails=["ord_1"])
    naive = report(NAIVE, [ONE, TWO], Told(witnessed(charges=[charge(ONE, 1), charge(ONE, 2)], mails=[])))
    text = shown(show_comparison, [ours, naive], "Side by side", ["and why"])
    assert row(text, "orders") == ["2", "2"]
    assert row(text, "charged twice") == ["0", "1 ✗"]
    assert row(text, "mailed twice") == ["1 ○", "0"]
    assert row(text, "never mailed") == ["0", "2 ✗"]
    assert row(text, "verdict") == ["✓ KEPT", "✗ 2 wronged"]
    assert text.rstrip().endswith("and why")


def test_a_second_mail_is_listed_with_its_cause() -> None:
    told = Told(TWICE, faults=[fault("email", Kind.DIE_AFTER, 5)], deliveries=[delivery("email", 4, None)])
    text = shown(show_audit, report(OURS, [ONE, TWO], told, second_mails=["ord_1"]))
    assert "ord_1: worker 7 died: die_after at call 2 of email for ord_1" in text
    assert "KEPT" in text


def test_a_violation_is_listed_and_nothing_is_called_kept() -> None:
    text = shown(show_audit, report(OURS, [ONE, TWO], Told(witnessed()), violations=["ord_1: 2 charges"]))
    assert "VIOLATED" in text
    assert "ord_1: 2 charges" in text
    assert "KEPT" not in text


def test_a_second_mail_with_no_cause_is_a_violation() -> None:
    text = shown(show_audit, report(OURS, [ONE, TWO], Told(TWICE), second_mails=["ord_1"]))
    assert "VIOLATED" in text
    assert "ord_1: mailed twice, and nothing says why" in text
