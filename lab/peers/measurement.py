"""Explore each peer with any one fault, and count the outcomes of the order."""

from collections import Counter
from dataclasses import dataclass, field
from time import process_time

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import every_state, spell

from lab.peers.outcome import KINDS
from lab.peers.scenarios import COMPARED, THIS_REPO

TITLES = {
    "powertools": "Powertools",
    "in_progress": "in progress, done, deleted on error",
    "claim_with_expiry": "claim with expiry",
    "conditional_put": "bare conditional put",
    THIS_REPO: "this repository",
}
WORDS = dict(zip(KINDS, ("double charges", "charged, not recorded", "lost", "stuck"), strict=True))


@dataclass
class Measurement:
    """One scenario with all schedules of at most one fault. `seconds` are CPU time."""

    scenario: str
    schedules: int = 0
    ended: int = 0  # schedules that ran to their end; the others reached a known state
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)  # kind → schedules that end so
    shortest: dict[str, str] = field(default_factory=dict)  # kind → schedule

    @property
    def peer(self) -> str:
        """The peer of the scenario."""
        return self.scenario.removesuffix("-late")

    @property
    def row(self) -> dict[str, object]:
        """The result as a row."""
        late = self.scenario != self.peer
        return {
            "peer": TITLES[self.peer],
            "done again": "after a day" if late else "at once",
            "schedules": self.schedules,
            "to the end": self.ended,
            **{words: self.counts[kind] for kind, words in WORDS.items()},
        }


def measure(place: ExplorerEnvironment, name: str) -> Measurement:
    """Explore a scenario and count every broken rule."""
    scenario, it, begun = COMPARED[name], Measurement(name), process_time()
    best: dict[str, tuple[int, str]] = {}
    for played in every_state(place, scenario, 1):
        it.schedules += 1
        it.ended += played.ended
        for kind in {what.partition(":")[0] for what in played.broken}:
            it.counts[kind] += 1
            shortest = len(played.moves), spell(scenario, played.moves)
            best[kind] = min(best.get(kind, shortest), shortest)
    it.shortest = {kind: schedule for kind, (_, schedule) in best.items()}
    it.seconds = process_time() - begun
    return it
