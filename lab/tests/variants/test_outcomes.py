"""Each kind of failure is found, with the ids of its orders."""

from dataclasses import replace
from typing import Any

import pytest
from tools.local.observe import Mail

from lab.variants import ExpectedOrder
from lab.variants.observation import Observation
from lab.variants.outcomes import classify

ONE = ExpectedOrder("ord_1", "one@example.com", 2500, "EUR", pays=True)
TWO = ExpectedOrder("ord_2", "two@example.com", 900, "USD", pays=False)
ORDERS = [ONE, TWO]


def charge(order: ExpectedOrder, status: str = "succeeded") -> dict[str, Any]:
    return {"status": status, "metadata": {"order_id": order.order_id}}


def row(order: ExpectedOrder, **other: Any) -> dict[str, Any]:
    state = "paid" if order.pays else "declined"
    return {"order_id": order.order_id, "state": state, "mailed_at": "2026-01-01T00:00:00Z"} | other


def placed(order: ExpectedOrder) -> dict[str, Any]:
    return {"order_id": order.order_id, "state": "placed"}


def mail(order: ExpectedOrder) -> Mail:
    return Mail((order.email,), f"About {order.order_id}", "", "m-1")


GOOD = Observation(
    charges=[charge(ONE), charge(TWO, "failed")],
    mails=[mail(ONE), mail(TWO)],
    orders=[row(ONE), row(TWO)],
    waiting=[],
    parked=[],
)
KINDS = ("charged_twice", "charged_not_recorded", "lost", "parked", "mailed_twice", "not_mailed", "stuck")


def found(**said: Any) -> dict[str, Any]:
    """Failures by kind for an observation with these changes."""
    outcomes = classify(ORDERS, replace(GOOD, **said))
    assert outcomes.orders == ("ord_1", "ord_2")
    assert outcomes.counts == {kind: len(getattr(outcomes, kind)) for kind in ("orders", *KINDS)}
    return {kind: ids for kind in KINDS if (ids := getattr(outcomes, kind))}


def test_orders_done_once_have_no_failure() -> None:
    assert found() == {}


CASES: dict[str, tuple[dict[str, Any], dict[str, tuple[str, ...]]]] = {
    "two charges": ({"charges": [charge(ONE), charge(ONE)]}, {"charged_twice": ("ord_1",)}),
    "a charge after a decline": (
        {"charges": [charge(ONE), charge(TWO, "failed"), charge(TWO)]},
        {"charged_not_recorded": ("ord_2",)},
    ),
    "two declines": ({"charges": [charge(ONE), charge(TWO, "failed"), charge(TWO, "failed")]}, {}),
    "a charge that no row shows, and its message gone": (
        {"orders": [placed(ONE), row(TWO)]},
        {"charged_not_recorded": ("ord_1",), "lost": ("ord_1",)},
    ),
    "a charge without a row": (
        {"orders": [row(TWO)]},
        {"charged_not_recorded": ("ord_1",), "lost": ("ord_1",)},
    ),
    "no row, no message": (
        {"orders": [row(ONE)], "mails": [mail(ONE)]},
        {"lost": ("ord_2",), "not_mailed": ("ord_2",)},
    ),
    "paid, never mailed, and no message left": (
        {"orders": [row(ONE, state="paid") | {"mailed_at": "x"}, {"order_id": "ord_2", "state": "declined"}]},
        {"lost": ("ord_2",)},
    ),
    "placed, with a message on its way": (
        {"charges": [], "orders": [placed(ONE), row(TWO)], "mails": [mail(TWO)], "waiting": ["ord_1"]},
        {"stuck": ("ord_1",), "not_mailed": ("ord_1",)},
    ),
    "placed, with its message in a DLQ": (
        {"charges": [], "orders": [placed(ONE), row(TWO)], "mails": [mail(TWO)], "parked": ["ord_1"]},
        {"parked": ("ord_1",), "not_mailed": ("ord_1",)},
    ),
    "final, with a copy in a DLQ": ({"parked": ["ord_1"]}, {"parked": ("ord_1",)}),
    "final, with a copy on its way": ({"waiting": ["ord_1"]}, {}),
    "two mails": ({"mails": [mail(ONE), mail(ONE), mail(TWO)]}, {"mailed_twice": ("ord_1",)}),
    "no mail, whatever the row says": ({"mails": [mail(ONE)]}, {"not_mailed": ("ord_2",)}),
}


@pytest.mark.parametrize("what", CASES)
def test_each_failure_is_found_with_its_order(what: str) -> None:
    said, wrong = CASES[what]
    assert found(**said) == wrong


def test_orders_of_others_are_ignored() -> None:
    stranger = replace(ONE, order_id="ord_3", email="three@example.com")
    assert found(charges=[*GOOD.charges, *[charge(stranger)] * 2], mails=[*GOOD.mails, *[mail(stranger)] * 2]) == {}
