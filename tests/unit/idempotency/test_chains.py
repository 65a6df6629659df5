"""Which records of a batch may run at the same time."""

from collections import deque
from dataclasses import dataclass

import pytest

from shared.idempotency.chains import Keys, chains_of


@dataclass(frozen=True)
class Job:
    name: str
    group: str | None = None


def chains(*jobs: Job) -> list[str]:
    return ["".join(job.name for job in chain) for chain in chains_of(jobs)]


def test_jobs_of_one_group_form_one_chain_in_the_order_received() -> None:
    jobs = [Job("a", "1"), Job("b", "2"), Job("c", "1"), Job("d", "2"), Job("e", "1")]

    assert chains(*jobs) == ["ace", "bd"]


def test_a_job_without_a_group_is_a_chain_of_its_own() -> None:
    assert chains(Job("a"), Job("b"), Job("c", "1")) == ["a", "b", "c"]


@pytest.mark.parametrize("groups", ["", "111", "123", "1213", "1122334411"])
def test_every_job_is_in_exactly_one_chain(groups: str) -> None:
    jobs = [Job(str(n), group) for n, group in enumerate(groups)]

    assert sorted("".join(chains(*jobs))) == [job.name for job in jobs]


def test_a_key_in_use_is_not_taken_and_its_release_returns_the_chains_that_wait() -> None:
    keys: Keys[Job] = Keys()
    first, second, third = deque([Job("a")]), deque([Job("b")]), deque([Job("c")])

    assert keys.take("k", first)
    assert not keys.take("k", second)
    assert not keys.take("k", third)
    assert keys.take("other", first)

    assert keys.release("k") == [second, third]
    assert keys.take("k", second)
    assert keys.release("k") == []
