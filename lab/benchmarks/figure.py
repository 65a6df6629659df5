"""The result of a benchmark: rows, bars, and measured values beside their goals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class WrongEffect(Exception):
    """The measured work was wrong or missing: the figure is invalid."""


@dataclass(frozen=True)
class GoalResult:
    """A measured value beside its goal. With `at_most`, the goal is an upper limit, otherwise a lower limit."""

    what: str
    value: float
    goal: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        return self.value <= self.goal if self.at_most else self.value >= self.goal


@dataclass(frozen=True)
class Figure:
    """`title` names the measurement and its unit. `notes` explain the rows."""

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]
    bars: Sequence[tuple[str, float]] = ()
    unit: str = ""
    goals: Sequence[GoalResult] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def require(holds: bool, otherwise: str) -> None:
    """Raises WrongEffect with the text unless the condition holds."""
    if not holds:
        raise WrongEffect(otherwise)
