"""Build histories for tests: two orders, and the given changes."""

from typing import Any

from tools.local.observe import Mail

from lab.faults.fault_table import InjectedFault
from lab.faults.journal import Delivery
from lab.faults.plan import Kind
from lab.variants import ExpectedOrder
from lab.variants.observation import Observation

START_MS = 1_790_000_000_000
ONE = ExpectedOrder("ord_1", "one@example.com", 2500, "EUR", pays=True)
TWO = ExpectedOrder("ord_2", "two@example.com", 900, "USD", pays=False)


def at(seconds: float) -> int:
    """Epoch milliseconds, this long after the start."""
    return START_MS + int(seconds * 1000)


def delivery(
    function: str, start: float, end: float | None, order: str = "ord_1", pid: int = 7, receive: int = 1, **other: Any
) -> Delivery:
    ended = None if end is None else at(end)
    message = other.pop("message", f"m-{function}")
    return Delivery("this-repo", function, pid, order, message, receive, at(start), ended, **other)


def fault(
    function: str, kind: Kind, seconds: float, order: str = "ord_1", pid: int = 7, call: int = 2
) -> InjectedFault:
    return InjectedFault("this-repo", function, order, 1, call, f"m-{function}", kind, at(seconds), pid)


def charge(order: ExpectedOrder, seconds: int, id: str = "ch_1", status: str = "succeeded") -> dict[str, Any]:
    return {
        "id": id,
        "status": status,
        "amount": order.amount,
        "currency": order.currency.lower(),
        "created": at(seconds) // 1000,
        "metadata": {"order_id": order.order_id},
    }


def mail(order: ExpectedOrder, seconds: float = 9) -> Mail:
    return Mail((order.email,), f"Order {order.order_id}", "", "m-1", at(seconds))


def row(order: ExpectedOrder, **other: Any) -> dict[str, Any]:
    state = "paid" if order.pays else "declined"
    return {"order_id": order.order_id, "state": state, "mailed_at": "2026-09-21T13:33:29+00:00"} | other


def observation(**other: Any) -> Observation:
    said: dict[str, Any] = {
        "charges": [charge(ONE, 3), charge(TWO, 3, "ch_2", "failed")],
        "mails": [mail(ONE), mail(TWO)],
        "orders": [row(ONE), row(TWO)],
        "waiting": [],
        "parked": [],
    }
    return Observation(**(said | other))
