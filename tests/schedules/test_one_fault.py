"""All schedules of each handler, and of order → relay → payment, in which any one thing goes wrong."""

from collections.abc import Callable

import pytest

from tests.schedules.bench import Bench
from tests.schedules.explorer import explore
from tests.schedules.scenarios import SCENARIOS

ONE_FAULT = (
    *("order", "order-batch", "order-refused", "payment", "payment-declined", "payment-forgetful", "payment-cold"),
    *("payment-other-create", "payment-other-retrieve", "payment-other-confirm", "payment-other-cancel"),
    *("email", "email-declined", "relay", "api", "api-reused", "chain", "chain-twice"),
)
# The provider itself misbehaves there; with a fault of ours on top they belong to the long run.
NO_FAULT = (
    "payment-another",
    "payment-other-amount-create",
    "payment-slow",
    "payment-error-before",
    "payment-error-after",
    "payment-drop",
    "pipeline",
)


@pytest.mark.parametrize(("name", "faults"), [*((name, 1) for name in ONE_FAULT), *((name, 0) for name in NO_FAULT)])
def test_every_schedule_with_so_many_faults_keeps_the_promise(
    place: Bench, name: str, faults: int, record_property: Callable[[str, object], None]
) -> None:
    report = explore(place, SCENARIOS[name], faults)

    record_property("explored", report.row)
    assert not report.violations, "\n".join(f"{schedule}  {what}" for schedule, what in report.violations)
    if faults:
        assert set("!?%~") <= set(report.met), "every kind of fault must have been met"
