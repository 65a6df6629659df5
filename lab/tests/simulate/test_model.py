"""What must be so of any queueing model, and of this one."""

from typing import Any

import pytest

from lab.simulate.model import Outage, Setup, Simulation, Stage, simulate
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


def test_a_message_that_is_received_too_often_is_parked() -> None:
    result = simulate(setup(stages=stages(max_receives=3), outage=down(hangs=False)))
    assert result.most_receives == {"payments": 3}
    assert result.parked["payments"] > 0
    assert result.parked["orders"] == result.parked["emails"] == 0


def test_a_provider_takes_no_more_than_its_rate() -> None:
    result = simulate(setup(rate=20, seconds=300, takes={"payments": 10.0}))
    assert result.throttled["payments"] > 0
    assert len(result.done) / result.ended_s <= 10.5
