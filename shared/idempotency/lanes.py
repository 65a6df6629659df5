"""Which records of a batch may run side by side."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias, TypeVar


class Keyed(Protocol):
    """A job with a business key, and a FIFO group where its queue has one."""

    @property
    def key(self) -> str | None: ...

    @property
    def group(self) -> str | None: ...


J = TypeVar("J", bound=Keyed)
Lane: TypeAlias = Sequence[J]


def lanes_of(jobs: Iterable[J]) -> list[Lane[J]]:
    """Split a batch into lanes: jobs that share a key or a FIFO group stand in one lane, in the order received."""
    lanes: list[list[tuple[int, J]]] = []
    lane_of: dict[tuple[str, str], list[tuple[int, J]]] = {}
    for position, job in enumerate(jobs):
        marks = [(kind, mark) for kind, mark in (("key", job.key), ("group", job.group)) if mark is not None]
        lane: list[tuple[int, J]] = [(position, job)]
        for other in {id(lane_of[mark]): lane_of[mark] for mark in marks if mark in lane_of}.values():
            lane = other + lane
            lanes.remove(other)
        lanes.append(lane)
        for _, member in lane:
            for kind, mark in (("key", member.key), ("group", member.group)):
                if mark is not None:
                    lane_of[kind, mark] = lane
    return [[job for _, job in sorted(lane, key=lambda entry: entry[0])] for lane in lanes]
