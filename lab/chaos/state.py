"""What a long run has done so far, in one file: interrupted and started again, it goes on after its last whole leg."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from lab.demo.versions import versions

LEG = 2_000  # orders on one local AWS, which is thrown away then: so neither it nor we grow


@dataclass(frozen=True)
class Asked:
    """`faults`: percent of first deliveries that meet one; `leg`: orders in each."""

    orders: int
    seed: int
    faults: float
    leg: int = LEG

    @property
    def legs(self) -> list[range]:
        """Which orders of the plan each leg takes."""
        return [range(start, min(start + self.leg, self.orders)) for start in range(0, self.orders, self.leg)]


@dataclass
class State:
    """`done`: what each leg found, in order."""

    asked: Asked
    versions: Mapping[str, str] = field(default_factory=versions)
    done: list[dict[str, Any]] = field(default_factory=list)

    @property
    def left(self) -> list[range]:
        """The legs that are yet to be run."""
        return self.asked.legs[len(self.done) :]


def resume(path: Path, orders: int, faults: float, seed: int | None) -> State | None:
    """The unfinished run that this one goes on with, if there is one; with no `seed`, whatever its seed is.

    One that was made with other versions is not gone on with: its report would name the wrong ones.
    """
    state = _read(path)
    if state is None:
        return None
    same = (state.asked.orders, state.asked.faults) == (orders, faults) and seed in (None, state.asked.seed)
    same &= state.asked.leg == LEG and state.versions == versions()
    return state if same and state.left else None


def set_aside(path: Path) -> Path | None:
    """Give an unfinished run's file a name of its own, so that the next does not write over it; answers the name."""
    state = _read(path)
    if state is None or not state.done or not state.left:
        return None
    asked = state.asked
    name = f"{path.stem}-{asked.orders}-{asked.seed}-{asked.faults:g}"
    aside = next(aside for n in count(1) if not (aside := path.with_stem(f"{name}-{n}")).exists())
    path.rename(aside)
    return aside


def _read(path: Path) -> State | None:
    """Nothing where there is no file, or one of another form: an older program's."""
    try:
        data = json.loads(path.read_text())
        state = State(Asked(**data["asked"]), data["versions"], data["done"])
        # An older program named no size of its legs: it would not be this one's.
        return state if data["asked"]["leg"] and all(leg["lanes"] for leg in state.done) else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return None


def save(state: State, path: Path) -> None:
    """Whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(asdict(state), indent=1, ensure_ascii=False) + "\n")
    os.replace(beside, path)
