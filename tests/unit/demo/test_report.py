"""What a terminal shows: each lane's numbers, a sign at what is wrong, and a verdict."""

import io
from typing import Any

from rich.console import Console

from demo.audit import Verdict, Violation
from demo.comparison import report
from demo.lanes import NAIVE, OURS
from demo.report import show_audit, show_comparison
from demo.story import Told
from tests.unit.demo.told import ONE, TWO, charge, mail, witnessed


def shown(show: Any, *arguments: Any) -> str:
    out = io.StringIO()
    show(Console(file=out, width=120, no_color=True), *arguments)
    return out.getvalue()


def row(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"│ {name} "))
    return [cell.strip() for cell in line.strip("│").split("│")[1:]]


def test_the_lanes_stand_beside_each_other() -> None:
    ours = report(OURS, [ONE, TWO], Told(witnessed(mails=[mail(ONE), mail(ONE), mail(TWO)])), second_mails=["ord_1"])
    naive = report(NAIVE, [ONE, TWO], Told(witnessed(charges=[charge(ONE, 1), charge(ONE, 2)], mails=[])))
    text = shown(show_comparison, [ours, naive], "Side by side", ["and why"])
    assert row(text, "orders") == ["2", "2"]
    assert row(text, "charged twice") == ["0", "1 ✗"]
    assert row(text, "mailed twice") == ["1 ○", "0"]
    assert row(text, "never mailed") == ["0", "2 ✗"]
    assert row(text, "verdict") == ["✓ KEPT", "✗ 2 wronged"]
    assert text.rstrip().endswith("and why")


def test_a_second_mail_is_listed_with_its_cause() -> None:
    text = shown(show_audit, Verdict(second_mails=["ord_1"]), {"ord_1": "worker 7 died with it"})
    assert "ord_1: worker 7 died with it" in text
    assert "KEPT" in text


def test_a_violation_is_listed_and_nothing_is_called_kept() -> None:
    text = shown(show_audit, Verdict([Violation("ord_1", "2 charges")]), {})
    assert "VIOLATED" in text
    assert "ord_1: 2 charges" in text
    assert "KEPT" not in text
