"""The traffic of a run is what the lab/demo says it is."""

from collections import Counter
from itertools import islice

from lab.demo.plan import DECLINES, MISBEHAVES, plan, schedule
from lab.demo.run import is_due
from lab.faults.plan import OPERATIONS
from lab.faults.plan import plan as plan_of_faults

ORDERS = list(islice(plan(seed=7), 100))


def test_the_same_seed_gives_the_same_orders() -> None:
    assert list(islice(plan(seed=7), 100)) == ORDERS
    assert list(islice(plan(seed=8), 100)) != ORDERS


def test_a_hundred_orders_hold_declines_and_several_of_each_misbehaviour() -> None:
    methods = Counter(order.payment_method for order in ORDERS)
    assert methods[DECLINES] == 20
    assert {method: methods[method] for method in MISBEHAVES} == dict.fromkeys(MISBEHAVES, 5)


def test_orders_come_both_ways_two_or_three_times_each_from_a_customer_of_its_own() -> None:
    assert {order.by_api for order in ORDERS} == {True, False}
    assert {order.arrivals for order in ORDERS} == {2, 3}
    assert len({order.email for order in ORDERS}) == len({order.key for order in ORDERS}) == 100


def test_the_schedule_holds_every_arrival() -> None:
    arrivals = Counter(order.key for order in schedule(ORDERS, seed=7))
    assert arrivals == {order.key: order.arrivals for order in ORDERS}


def test_an_order_is_due_a_fault_if_the_plan_has_one_for_any_of_its_steps() -> None:
    keys = [order.key for order in ORDERS]
    assert not any(is_due(7, 0, key) for key in keys)
    assert all(is_due(7, 100, key) for key in keys)
    due = {key for key in keys if is_due(7, 6, key)}
    assert 0 < len(due) < len(keys)
    assert {key for key in keys if any(plan_of_faults(7, 6, step, key, 1) for step in OPERATIONS)} == due
