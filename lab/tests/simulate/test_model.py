"""What must be so of any queueing model, and of this one."""

from dataclasses import replace
from typing import Any

import pytest

from lab.simulate.model import Outage, Setup, Simulation, Stage, quantile, simulate
from lab.simulate.parameters import capacity

SLOW = 0.5


def stages(*, workers: int = 4, batch: int = 5, max_receives: int = 30) -> list[Stage]:
    return [
        Stage("orders", 0.02, 2, 10, 0, max_receives),
        Stage("payments", SLOW, workers, batch, 0, max_receives),
        Stage("emails", 0.1, 2, 5, 0, max_receives),
    ]


def setup(rate: float = 10, seconds: float = 120, **other: Any) -> Setup:
    given: dict[str, Any] = {"stages": stages(), "rate_at": lambda _: rate, "top_rate": rate, "arrivals_s": seconds}
    return Setup(**{**given, **other})


def down(hangs: bool) -> Outage:
    return Outage("payments", 30, 90, hangs)


@pytest.mark.parametrize(
    "of",
    [
        setup(),
        setup(outage=down(hangs=True)),
        setup(outage=down(hangs=False)),
        setup(takes={"emails": 5.0}),
        setup(in_flight_limit=20, outage=down(hangs=False)),
        setup(stages=stages(max_receives=2), outage=down(hangs=False)),
    ],
    ids=["steady", "hangs", "refuses", "throttled", "few in flight", "few receives"],
)
def test_no_order_is_lost_or_done_twice(of: Setup) -> None:
    simulation = Simulation(of, 1.0)
    result = simulation.run()
    parked = [message.order for queue in simulation.queues.values() for message in queue.parked]
    assert len(result.arrived) > 1000
    assert sorted([*result.done, *parked]) == list(range(len(result.arrived)))
    assert all(queue.backlog == 0 for queue in simulation.queues.values())
    assert all(result.done[order] > result.arrived[order] for order in result.done)


def test_a_seed_is_a_run() -> None:
    one, same, other = (simulate(setup(seed=seed)) for seed in (1, 1, 2))
    assert one == same
    assert one.arrived != other.arrived


def test_as_many_orders_are_inside_as_arrive_while_one_is_there() -> None:
    """Little's law: https://doi.org/10.1287/opre.9.3.383"""
    seconds = 900.0
    result = simulate(setup(rate=10, seconds=seconds), 0.25)
    inside = result.in_system_s / seconds
    rate, mean_s = len(result.arrived) / seconds, sum(result.latencies) / len(result.done)
    assert inside == pytest.approx(rate * mean_s, rel=0.03)


def _growth(rate: float) -> float:
    """Messages that the payments queue has more at the end of the arrivals than at a third of them."""
    result = simulate(setup(rate=rate, seconds=300))
    backlog = result.backlog["payments"]
    return (sum(backlog[280:300]) - sum(backlog[100:120])) / 20


def test_the_backlog_grows_where_more_arrives_than_is_served_and_nowhere_else() -> None:
    most = capacity(stages()[1])
    assert _growth(0.7 * most) < most  # less than a second's worth, up or down
    over = 0.3 * most
    assert _growth(most + over) == pytest.approx(180 * over, rel=0.25)


def test_what_waits_on_the_queue_costs_no_receive() -> None:
    crowded = simulate(setup(rate=80, seconds=60))
    assert max(crowded.backlog["payments"]) > 1000
    assert crowded.most_receives == {}  # of failed tries
    assert sum(crowded.parked.values()) == 0


def test_a_message_that_is_received_too_often_is_parked() -> None:
    result = simulate(setup(stages=stages(max_receives=3), outage=down(hangs=False)))
    assert result.most_receives == {"payments": 3}
    assert result.parked["payments"] > 0
    assert result.parked["orders"] == result.parked["emails"] == 0


def test_no_more_is_in_flight_than_sqs_allows_and_a_back_off_counts() -> None:
    free = simulate(setup(outage=down(hangs=False)))
    bound = simulate(setup(outage=down(hangs=False), in_flight_limit=40))
    assert free.most_in_flight["payments"] > 40
    assert bound.most_in_flight["payments"] == 40
    assert bound.most_receives["payments"] <= free.most_receives["payments"]


def test_a_provider_takes_no_more_than_its_rate() -> None:
    result = simulate(setup(rate=20, seconds=300, takes={"payments": 10.0}))
    assert result.throttled["payments"] > 0
    assert len(result.done) / result.ended_s <= 10.5


def test_a_mapping_takes_time_to_grow() -> None:
    def longest(workers: int) -> float:
        found = [*stages()[:1], replace(stages()[1], workers=workers, batch=1), *stages()[2:]]
        return simulate(setup(rate=40, seconds=60, stages=found)).latencies[-1]

    assert longest(400) == pytest.approx(longest(60), rel=0.35)  # the ramp is what one waits for, not the maximum


def test_a_slice_tells_what_the_whole_does() -> None:
    found = [replace(stage, workers=workers) for stage, workers in zip(stages(), (4, 20, 8), strict=True)]
    whole = simulate(setup(rate=100, seconds=120, stages=found, shards=8))
    part = simulate(setup(rate=100, seconds=120, stages=found, shards=8, slice_of=4))
    assert len(part.arrived) * 4 == pytest.approx(len(whole.arrived), rel=0.05)
    assert quantile(part.latencies, 0.5) == pytest.approx(quantile(whole.latencies, 0.5), rel=0.2)
