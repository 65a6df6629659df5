"""The payment step of each peer and of this repository, on the same two messages, under the same rules.

In the scenarios `…-late`, a message that is not done comes back after a day, as from a DLQ or a backlog. The provider
has deleted its keys by then: https://docs.stripe.com/api/idempotent_requests
"""

from collections.abc import Callable

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.faults import MAKE_LATE
from tests.schedules.run import ALL_KINDS, Run
from tests.schedules.scenarios import TIMEOUTS_S, Scenario, plant, seed
from tests.schedules.sources import QueueSource

from lab.peers.cold_start import PREFIX
from lab.peers.outcome import OUTCOME

PEERS = ("powertools", "in_progress", "claim_with_expiry", "conditional_put")
THIS_REPO = "this-repo"
RECEIVES = 12  # deliveries of two messages: a step that needs more is stuck
LATE_S = 25 * 3600.0


def _payment(function: str, later_s: float) -> Callable[[ExplorerEnvironment, Run], None]:
    def prepare(bench: ExplorerEnvironment, run: Run) -> None:
        order = seed(bench, "pm_card_visa", "orders")
        plant(run, order)
        for body in order.sent["payments"] * 2:
            run.model.queues.put("payments", {"MessageBody": body})
        run.sources.append(
            QueueSource("p", function, "payments", TIMEOUTS_S["payment"], run.model.queues, lambda *_: None)
        )
        run.most, run.later_s = RECEIVES, later_s

    return prepare


def _scenario(name: str, later_s: float) -> Scenario:
    function = "payment" if name == THIS_REPO else PREFIX + name
    late = "-late" if later_s else ""
    return Scenario(
        name + late,
        _payment(function, later_s),
        frozenset({"paid"}),
        outcome_rules=OUTCOME,
        kinds=ALL_KINDS - MAKE_LATE,  # the peers were compared without late requests
    )


COMPARED = {
    scenario.name: scenario
    for scenario in (_scenario(name, later_s) for name in (*PEERS, THIS_REPO) for later_s in (0, LATE_S))
}
