"""What a benchmark answers with: rows for people, bars for the page, and a verdict wherever a goal was set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class WrongEffect(Exception):
    """The work that was measured was not the work that was to be done: the figure is worth nothing."""


@dataclass(frozen=True)
class Verdict:
    """A measured value beside its goal. `at_most`: the goal is a ceiling, else a floor."""

    what: str
    value: float
    goal: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    @property
    def spelled_goal(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.goal:g}"


@dataclass(frozen=True)
class Figure:
    """`title` says what is measured and in what; `notes` what a reader must know to read it."""

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]
    bars: Sequence[tuple[str, float]] = ()
    unit: str = ""
    verdicts: Sequence[Verdict] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def require(holds: bool, otherwise: str) -> None:
    """Raises WrongEffect with the text unless the condition holds."""
    if not holds:
        raise WrongEffect(otherwise)
