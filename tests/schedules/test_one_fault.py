"""All schedules of each handler, and of order → relay → payment, in which one thing goes wrong."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.idempotency import Effect, Step
from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import explore
from tests.schedules.faults import Fault
from tests.schedules.run import ALL_KINDS
from tests.schedules.scenarios import PARTS, SCENARIOS, Scenario

# The searches that take longest come first, in parts that run on all processors.
IN_PARTS = ("chain-twice", "payment-forgetful", "payment", "payment-declined")
ONE_FAULT = (
    *("chain", "email", "email-declined", "order-batch", "payment-cold", "order", "order-refused"),
    *("payment-other-create", "payment-other-retrieve", "payment-other-confirm", "payment-other-cancel"),
    *("payment-refused-at-create", "payment-refused-at-confirm", "payment-wrong-key", "payment-settled"),
    *("relay", "api", "api-reused", "payment-forgotten", "email-forgotten"),
)
# The provider fails, or a record is deleted. With one more fault these scenarios belong to `make verify`.
NO_FAULT = (
    "pipeline",
    "payment-deleted",
    "payment-declined-deleted",
    "payment-another",
    "payment-other-amount-create",
    "payment-slow",
    "payment-error-before",
    "payment-error-after",
    "payment-drop",
)
SEARCHES = [
    *(
        (f"{name} {codes}", part, 1)
        for name in IN_PARTS
        for codes, part in zip(PARTS, SCENARIOS[name].parts(), strict=True)
    ),
    *((name, SCENARIOS[name], 1) for name in ONE_FAULT),
    *((name, SCENARIOS[name], 0) for name in NO_FAULT),
]
ALWAYS_POSSIBLE = frozenset(map(Fault, "!?%~@^"))


@pytest.mark.parametrize(
    ("scenario", "faults"), [search[1:] for search in SEARCHES], ids=[search[0] for search in SEARCHES]
)
def test_every_schedule_with_so_many_faults_keeps_the_guarantees(
    environment: ExplorerEnvironment, scenario: Scenario, faults: int, record_property: Callable[[str, object], None]
) -> None:
    report = explore(environment, scenario, faults)

    record_property("explored", report.row)
    assert not report.violations, "\n".join(f"{schedule}  {what}" for schedule, what in report.violations)
    if faults:
        assert {fault.value for fault in scenario.kinds & ALWAYS_POSSIBLE} <= set(report.met), (
            "a kind of fault is missing"
        )


@pytest.mark.parametrize("name", ["order", "email-once"])
def test_the_parts_of_a_scenario_are_the_whole(environment: ExplorerEnvironment, name: str) -> None:
    whole = explore(environment, SCENARIOS[name], 1)
    parts = [explore(environment, part, 1) for part in SCENARIOS[name].parts()]

    assert set(ALL_KINDS) == {Fault.NONE} | {Fault(code) for codes in PARTS for code in codes}
    assert set().union(*(part.met for part in parts)) == set(whole.met)
    assert set().union(*(part.ends for part in parts)) == whole.ends


def test_every_step_with_an_external_effect_has_a_scenario_without_its_record() -> None:
    handlers = Path(__file__).parents[2].glob("functions/*/handler.py")
    external = {
        path.parent.name
        for path in handlers
        for value in vars(importlib.import_module(f"functions.{path.parent.name}.handler")).values()
        if isinstance(value, Step) and value.effect is Effect.EXTERNAL
    }

    assert {f"{function}-forgotten" for function in external} <= set(ONE_FAULT)
