"""Workers that meet for real: threads, over real sockets, one ledger."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from functions.payment.handler import charge
from shared.idempotency import NotDone, Outcome, StepError, Unknown
from tests.harness.payment import Delivery, Payments

WORKERS = 6

T = TypeVar("T")


def test_workers_that_race_for_one_message_charge_it_once(payments: Payments) -> None:
    delivery = payments.delivery()

    reports = _together(lambda _: payments.deliver(Delivery(delivery.event, delivery.message_id)))

    assert [] in reports  # one at least has done it
    payments.until_quiet(delivery)
    payments.settled_once()
    assert payments.connection.calls.count("confirm") == 1


@pytest.mark.parametrize(("method", "state"), [("pm_card_visa", "paid"), ("pm_card_chargeDeclined", "declined")])
@pytest.mark.parametrize("keys", ["kept", "pruned"])
def test_workers_without_any_claim_charge_an_order_once(payments: Payments, method: str, state: str, keys: str) -> None:
    """As if every lease were over at once: what is left is the row and the intent."""
    delivery = payments.delivery(method)

    def zombie(n: int) -> object:
        if keys == "pruned":
            payments.forget()
        try:
            return charge(delivery.event, payments.attempt(delivery.event, number=n + 1))
        except StepError as error:
            return error

    ends = _together(zombie)

    assert all(isinstance(end, Outcome | NotDone | Unknown) for end in ends)
    results = [end.result for end in ends if isinstance(end, Outcome)]
    assert all((result.state, result.payment_intent) == (state, results[0].payment_intent) for result in results)
    assert len(payments.charges()) == 1
    payments.until_quiet(delivery)
    payments.settled_once(state)


def test_a_batch_of_orders_and_duplicates_charges_each_once(payments: Payments) -> None:
    events = [
        payments.order(f"ord_{n}", "pm_card_chargeDeclined" if n % 3 == 0 else "pm_card_visa") for n in range(1, 6)
    ]
    batch = [Delivery(event, f"message-{n}") for n, event in enumerate(events * 2)]

    assert payments.deliver(*batch) == []

    for n in range(1, 6):
        paid = n % 3 != 0
        assert payments.charges(f"ord_{n}") == [("succeeded" if paid else "failed", 2500)]
        assert payments.state(f"ord_{n}") == ("paid" if paid else "declined")


def _together(work: Callable[[int], T]) -> list[T]:
    """Run on many threads that start at the same moment."""
    start = threading.Barrier(WORKERS)

    def run(n: int) -> T:
        start.wait(timeout=30)
        return work(n)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(run, range(WORKERS)))
