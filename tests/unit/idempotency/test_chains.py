"""Which records of a batch may run at the same time."""

from collections import deque

import pytest

from shared.idempotency.sqs import Job, Keys, chains_of


def job(name: str, group: str | None = None) -> Job:
    fifo = {"attributes": {"MessageGroupId": group}, "eventSourceARN": "arn:aws:sqs:eu-west-1:1:source.fifo"}
    return Job({"messageId": name, **(fifo if group else {})})


def chains(*jobs: Job) -> list[str]:
    return ["".join(job.record["messageId"] for job in chain) for chain in chains_of(jobs)]


def test_jobs_of_one_group_form_one_chain_in_the_order_received() -> None:
    jobs = [job("a", "1"), job("b", "2"), job("c", "1"), job("d", "2"), job("e", "1")]

    assert chains(*jobs) == ["ace", "bd"]


def test_a_job_without_a_group_is_a_chain_of_its_own() -> None:
    assert chains(job("a"), job("b"), job("c", "1")) == ["a", "b", "c"]


@pytest.mark.parametrize("groups", ["", "111", "123", "1213", "1122334411"])
def test_every_job_is_in_exactly_one_chain(groups: str) -> None:
    jobs = [job(str(n), group) for n, group in enumerate(groups)]

    assert sorted("".join(chains(*jobs))) == [job.record["messageId"] for job in jobs]


def test_a_key_in_use_is_not_taken_and_its_release_returns_the_chains_that_wait() -> None:
    keys = Keys()
    first, second, third = deque([job("a")]), deque([job("b")]), deque([job("c")])

    assert keys.take("k", first)
    assert not keys.take("k", second)
    assert not keys.take("k", third)
    assert keys.take("other", first)

    assert keys.release("k") == [second, third]
    assert keys.take("k", second)
    assert keys.release("k") == []
