"""Traffic as a queue may make it."""

from collections import Counter

from lab.faults.deliveries import Unruly

ORDERS = [f"ord_{n}" for n in range(500)]


def test_every_message_arrives_as_often_as_stated_and_the_seed_decides_when() -> None:
    traffic = Unruly(copies=3).deliveries(ORDERS, rate=50, seed=7)

    assert Counter(delivery.message for delivery in traffic) == dict.fromkeys(ORDERS, 3)
    assert {(delivery.message, delivery.copy) for delivery in traffic} == {(o, c) for o in ORDERS for c in (1, 2, 3)}
    assert traffic == Unruly(copies=3).deliveries(ORDERS, rate=50, seed=7)
    assert traffic != Unruly(copies=3).deliveries(ORDERS, rate=50, seed=8)


def test_arrivals_come_by_their_times_in_another_order_than_they_were_sent() -> None:
    traffic = Unruly(copies=1, late=0).deliveries(ORDERS, rate=50, seed=7)

    assert [delivery.at_s for delivery in traffic] == [n / 50 for n in range(500)]
    assert [delivery.message for delivery in traffic] != ORDERS
