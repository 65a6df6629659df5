"""Which records of a batch may run at the same time, and which run one after the other."""

import threading
from collections import deque
from collections.abc import Iterable
from typing import Generic, Protocol, TypeAlias, TypeVar


class Grouped(Protocol):
    """A job that may belong to a FIFO message group."""

    @property
    def group(self) -> str | None: ...


J = TypeVar("J", bound=Grouped)
Chain: TypeAlias = deque[J]


def chains_of(jobs: Iterable[J]) -> list[Chain[J]]:
    """Split a batch into chains: all jobs of a FIFO group in the order received, or one job without a group."""
    chains: list[Chain[J]] = []
    of_group: dict[str, Chain[J]] = {}
    for job in jobs:
        if job.group in of_group:
            of_group[job.group].append(job)
            continue
        chain = deque([job])
        chains.append(chain)
        if job.group is not None:
            of_group[job.group] = chain
    return chains


class Keys(Generic[J]):
    """The business keys in use. Two jobs of one key never run at the same time.

    A chain whose next job needs a key in use waits behind that key. The thread that releases the key continues the
    chain, so that no thread of the pool is blocked.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Chain[J]]] = {}

    def take(self, key: str, chain: Chain[J]) -> bool:
        """Take a key for the next job of a chain. Answers False if the key is in use: then the chain waits."""
        with self._lock:
            if key in self._waiting:
                self._waiting[key].append(chain)
                return False
            self._waiting[key] = []
            return True

    def release(self, key: str) -> list[Chain[J]]:
        """Release a key. Answers the chains that waited for it, in the order in which they came."""
        with self._lock:
            return self._waiting.pop(key)
