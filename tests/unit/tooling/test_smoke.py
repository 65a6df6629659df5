"""The smoke test tells a kept promise from a broken one."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from shared.orders.audit import Charge
from tools.account import Stop
from tools.operate.deployment import Deployment
from tools.smoke import Sent, smoke, violations

PAID = Sent("ord_1", "API", "paid", 2500)
DECLINED = Sent("ord_2", "queue", "declined", 2500)


def charge(status: str, amount: int = 2500) -> Charge:
    return Charge("ch_1", "pi_1", status, amount, "EUR", refunded=False, at="2026-01-01T00:00:00Z")


def found(order: Sent, state: str, charges: Mapping[str, Sequence[Charge]]) -> list[str]:
    return list(violations([order], {order.order_id: state}, charges))


def test_one_charge_or_one_decline_and_a_mail_is_as_promised() -> None:
    assert found(PAID, "paid, mailed", {"ord_1": [charge("succeeded")]}) == []
    assert found(DECLINED, "declined, mailed", {"ord_2": [charge("failed")]}) == []


@pytest.mark.parametrize(
    ("state", "charges", "said"),
    [
        ("paid, mailed", [charge("succeeded"), charge("succeeded")], "has charges"),
        ("paid, mailed", [charge("succeeded"), charge("failed")], "has charges"),
        ("paid, mailed", [], "has charges"),
        ("paid, mailed", [charge("succeeded", 2501)], "has charges"),
        ("declined, mailed", [charge("succeeded")], "is declined, mailed"),
        ("paid", [charge("succeeded")], "is paid, should be paid, mailed"),
        ("missing", [charge("succeeded")], "is missing"),
    ],
)
def test_anything_else_is_not(state: str, charges: list[Charge], said: str) -> None:
    (line,) = found(PAID, state, {"ord_1": charges})

    assert line.startswith("ord_1 (API) ")
    assert said in line


def test_prod_is_refused() -> None:
    prod = Deployment("prod", "prod", {}, cast(Any, None))
    with pytest.raises(Stop, match="payment sandbox"):
        smoke(prod)
