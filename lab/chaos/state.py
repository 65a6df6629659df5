"""The state of a long run, in one file. A run that is started again continues after its last complete leg."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from lab.demo.versions import versions

LEG = 2_000  # orders on one local AWS, which is then discarded: memory does not grow


@dataclass(frozen=True)
class RunParameters:
    """`faults` is the percentage of first deliveries that meet a fault. `leg` is the number of orders in a leg."""

    orders: int
    seed: int
    faults: float
    leg: int = LEG

    @property
    def legs(self) -> list[range]:
        """The numbers of the orders of each leg."""
        return [range(start, min(start + self.leg, self.orders)) for start in range(0, self.orders, self.leg)]


@dataclass
class State:
    """`done` holds the numbers of each complete leg."""

    parameters: RunParameters
    versions: Mapping[str, str] = field(default_factory=versions)
    done: list[dict[str, Any]] = field(default_factory=list)

    @property
    def left(self) -> list[range]:
        """The legs that are not done."""
        return self.parameters.legs[len(self.done) :]


def resume(path: Path, orders: int, faults: float, seed: int | None) -> State | None:
    """The unfinished run to continue, if there is one. Without `seed`, any seed matches.

    A run with other versions of the tools is not continued: its report would name the wrong versions.
    """
    state = _load(path)
    if state is None:
        return None
    same = (state.parameters.orders, state.parameters.faults) == (orders, faults) and seed in (
        None,
        state.parameters.seed,
    )
    same &= state.parameters.leg == LEG and state.versions == versions()
    return state if same and state.left else None


def set_aside(path: Path) -> Path | None:
    """Rename the file of an unfinished run, so that the next run does not overwrite it. Returns the new path."""
    state = _load(path)
    if state is None or not state.done or not state.left:
        return None
    parameters = state.parameters
    name = f"{path.stem}-{parameters.orders}-{parameters.seed}-{parameters.faults:g}"
    aside = next(aside for n in count(1) if not (aside := path.with_stem(f"{name}-{n}")).exists())
    path.rename(aside)
    return aside


def _load(path: Path) -> State | None:
    """The state in the file. None if there is no file, or if it has another format."""
    try:
        data = json.loads(path.read_text())
        state = State(RunParameters(**data["parameters"]), data["versions"], data["done"])
        return state if data["parameters"]["leg"] and all(leg["variants"] for leg in state.done) else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return None


def save(state: State, path: Path) -> None:
    """Replace the file atomically."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(asdict(state), indent=1, ensure_ascii=False) + "\n")
    os.replace(beside, path)
