"""Which records of a batch may run side by side."""

from dataclasses import dataclass

import pytest

from shared.idempotency.lanes import lanes_of


@dataclass(frozen=True)
class Job:
    name: str
    key: str | None
    group: str | None = None


def lanes(*jobs: Job) -> set[str]:
    return {"".join(job.name for job in lane) for lane in lanes_of(jobs)}


def test_jobs_of_one_key_stand_in_one_lane_in_the_order_received() -> None:
    jobs = [Job("a", "1"), Job("b", "2"), Job("c", "1"), Job("d", "2"), Job("e", "1")]

    assert lanes(*jobs) == {"ace", "bd"}


def test_jobs_without_a_key_hold_nobody_up() -> None:
    assert lanes(Job("a", None), Job("b", None), Job("c", "1")) == {"a", "b", "c"}


def test_jobs_of_one_group_stand_in_one_lane_whatever_their_keys() -> None:
    jobs = [Job("a", "1", "g"), Job("b", "2", "h"), Job("c", None, "g"), Job("d", "3", "g")]

    assert lanes(*jobs) == {"acd", "b"}


def test_a_key_that_two_groups_share_joins_their_lanes_in_the_order_received() -> None:
    jobs = [Job("a", "1", "g"), Job("b", "2", "h"), Job("c", "3", "i"), Job("d", "2", "g"), Job("e", "9", "h")]

    assert lanes(*jobs) == {"abde", "c"}


def test_a_key_is_never_taken_for_a_group() -> None:
    assert lanes(Job("a", "x", "g"), Job("b", "g", "x")) == {"a", "b"}


@pytest.mark.parametrize("marks", ["111", "123", "1213", "1122334411"])
def test_every_job_stands_in_exactly_one_lane(marks: str) -> None:
    jobs = [Job(str(n), mark) for n, mark in enumerate(marks)]

    assert sorted(job.name for lane in lanes_of(jobs) for job in lane) == sorted(job.name for job in jobs)


def test_no_jobs_make_no_lanes() -> None:
    assert lanes_of([]) == []
