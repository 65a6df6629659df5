"""Schedules that once broke something, by name."""

import pytest

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import replay

SCHEDULES = {
    # The false message claims and dies; being refused later it kept the key for its own, until the record expired.
    "a_false_request_whose_worker_died_does_not_hold_the_key": "payment-another:ppB+AApCCCC",
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_was_broken_once_is_not_again(environment: ExplorerEnvironment, name: str) -> None:
    trace, broken = replay(environment, SCHEDULES[name])

    assert trace
    assert not broken
