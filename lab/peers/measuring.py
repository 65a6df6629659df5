"""Explores the peers with any one fault, and counts what became of the order."""

from collections import Counter
from dataclasses import dataclass, field
from time import process_time

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import every_state, spell

from lab.peers.outcome import KINDS
from lab.peers.scenarios import COMPARED, OURS

TITLES = {
    "powertools": "Powertools",
    "in_progress": "in progress, done, deleted on error",
    "claim_with_expiry": "claim with expiry",
    "conditional_put": "bare conditional put",
    OURS: "this repository",
}
WORDS = dict(zip(KINDS, ("double charges", "charged, not recorded", "lost", "stuck"), strict=True))


@dataclass
class Measured:
    """One scenario, all its schedules with up to one fault. `seconds` of processor time."""

    scenario: str
    schedules: int = 0
    ended: int = 0  # of them run to their end; the others came to where all was known
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)  # kind → schedules that end so
    shortest: dict[str, str] = field(default_factory=dict)  # kind → schedule

    @property
    def peer(self) -> str:
        """Whose scenario it is."""
        return self.scenario.removesuffix("-late")

    @property
    def row(self) -> dict[str, object]:
        """For tables and files."""
        late = self.scenario != self.peer
        return {
            "peer": TITLES[self.peer],
            "done again": "after a day" if late else "at once",
            "schedules": self.schedules,
            "to the end": self.ended,
            **{words: self.counts[kind] for kind, words in WORDS.items()},
        }


def measure(place: ExplorerEnvironment, name: str) -> Measured:
    """Explore a scenario, whatever breaks."""
    scenario, it, begun = COMPARED[name], Measured(name), process_time()
    best: dict[str, tuple[int, str]] = {}
    for played in every_state(place, scenario, 1):
        it.schedules += 1
        it.ended += played.ended
        for kind in {what.partition(":")[0] for what in played.broken}:
            it.counts[kind] += 1
            found = len(played.moves), spell(scenario, played.moves)
            best[kind] = min(best.get(kind, found), found)
    it.shortest = {kind: schedule for kind, (_, schedule) in best.items()}
    it.seconds = process_time() - begun
    return it
