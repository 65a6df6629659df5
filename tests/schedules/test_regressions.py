"""Schedules that once broke something, by name."""

import pytest

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import replay

SCHEDULES = {
    # The worker of a wrong message claims and dies. When the message was refused later, its claim kept the key until
    # the record expired.
    "a_false_request_whose_worker_died_does_not_hold_the_key": "payment-another:ppB+AApCCCC",
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_that_once_broke_an_invariant_breaks_none(environment: ExplorerEnvironment, name: str) -> None:
    trace, broken = replay(environment, SCHEDULES[name])

    assert trace
    assert not broken
