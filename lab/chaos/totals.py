"""The sums of all legs, and whether the run was what it says and ours kept its promise. Pure."""

from collections import Counter
from dataclasses import dataclass

from lab.chaos.state import State

LEAST_PERCENT = 5.0  # of all deliveries, in each lane, are cut short by the death of their worker


@dataclass(frozen=True)
class Totals:
    """`lanes`: the numbers of each; `second_mails`: the orders told twice, with what left the first send unknown."""

    lanes: dict[str, dict[str, int]]
    second_mails: dict[str, str]
    violations: list[str]
    seconds: int
    peak_mb: int

    def cut_short_percent(self, lane: str) -> float:
        counts = self.lanes[lane]
        return 100 * counts["cut_short"] / counts["deliveries"] if counts["deliveries"] else 0.0

    @property
    def too_tame(self) -> str:
        """Which lanes suffered fewer deaths than a long run promises; empty if none."""
        lanes = [lane for lane in self.lanes if self.cut_short_percent(lane) < LEAST_PERCENT]
        if not lanes:
            return ""
        of = " and ".join(lanes)
        return f"Too tame to prove much: fewer than {LEAST_PERCENT:g} % of the deliveries of {of} were cut short."


def totals(state: State) -> Totals:
    """Of the legs that are done."""
    lanes: dict[str, Counter[str]] = {}
    for leg in state.done:
        for lane, counts in leg["lanes"].items():
            lanes.setdefault(lane, Counter()).update(counts)
    return Totals(
        lanes={lane: dict(counts) for lane, counts in lanes.items()},
        second_mails={id: why for leg in state.done for id, why in leg["second_mails"].items()},
        violations=[each for leg in state.done for each in leg["violations"]],
        seconds=sum(leg["seconds"] for leg in state.done),
        peak_mb=max((leg["peak_mb"] for leg in state.done), default=0),
    )
