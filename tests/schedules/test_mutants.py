"""The mutants still fit the source that they mutate."""

from pathlib import Path

import pytest

from tests.schedules.mutants import MUTANTS, Mutant
from tests.schedules.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_of_code_that_compiles(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()

    mutated = mutant.apply(source)

    compile(mutated, mutant.file, "exec")
    assert mutated != source
    assert set(mutant.hunts) <= set(SCENARIOS)
    assert all((ROOT / test).exists() for test in mutant.tests)


def test_there_are_enough_mutants_and_no_two_of_one_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25
