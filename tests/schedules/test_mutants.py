"""Each mutant can be applied to the code and undone."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tests.schedules import mutant_plugin
from tests.schedules.environment import ExplorerEnvironment, explorer_environment
from tests.schedules.explorer import explore
from tests.schedules.mutant_runs import CONTROL
from tests.schedules.mutants import MUTANTS, Mutant, by_module
from tests.schedules.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]


class Recorder:
    """Records which attributes are replaced, with their values before and after. Works like a MonkeyPatch."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self.replaced: list[tuple[object, str, object, object]] = []

    def setattr(self, target: object, name: str, value: object) -> None:
        before = vars(target)[name] if name in vars(target) else getattr(target, name)
        self._patch.setattr(target, name, value)
        self.replaced.append((target, name, before, value))

    def undo(self) -> None:
        self._patch.undo()


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_replaces_something_that_exists_and_is_undone(mutant: Mutant) -> None:
    patch = Recorder()

    mutant.break_code(cast(pytest.MonkeyPatch, patch))

    assert patch.replaced
    assert all(before != after for _, _, before, after in patch.replaced)
    assert all(vars(target)[name] is after for target, name, _, after in patch.replaced)
    patch.undo()
    assert all(vars(target)[name] is before for target, name, before, _ in patch.replaced)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_the_scenarios_and_tests_of_a_mutant_exist(mutant: Mutant) -> None:
    assert set(mutant.scenarios) <= set(SCENARIOS)
    assert mutant.tests
    assert all((ROOT / test).exists() for test in mutant.tests)


def test_every_module_that_gives_a_guarantee_has_mutants() -> None:
    assert {"store", "records", "steps", "engine", "sqs", "orders", "payment", "email", "relay", "sweep", "api"} <= set(
        by_module()
    )


@pytest.mark.parametrize(
    "name",
    [
        "duplicate_replays_none",
        "claim_in_progress_taken_for_done",
        "key_free_for_its_old_owner",
        "forgotten_key_free_during_its_lease",
    ],
)
def test_the_explorer_notices_a_mutant_and_not_the_control(name: str) -> None:
    scenario = SCENARIOS[MUTANTS[name].scenarios[0]]

    with MUTANTS[name].applied(), explorer_environment() as environment:
        assert explore(environment, scenario, 1, stop_at=1).violations
    with CONTROL.applied(), explorer_environment() as environment:
        assert not explore(environment, scenario, 1, stop_at=1, limit=50).violations


def test_the_plugin_applies_the_mutant_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def applied() -> Callable[..., object]:
        from shared.idempotency import records

        return records.decode_result

    before = applied()
    monkeypatch.setenv("MUTANT", "duplicate_replays_none")
    mutant_plugin.pytest_configure()
    during = applied()
    mutant_plugin.pytest_unconfigure()

    assert during is not before
    assert applied() is before


def test_the_search_stops_after_a_number_of_schedules(environment: ExplorerEnvironment) -> None:
    assert explore(environment, SCENARIOS["email"], 1, limit=7).schedules == 7
