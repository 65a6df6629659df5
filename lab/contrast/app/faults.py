"""Faults around the functions of all lanes alike, by one seed and one table."""

from dataclasses import replace

from aws_cdk import App, Stack
from stacks.constructs.function import AppFunction
from stacks.settings import Settings
from stacks.times import Timing

from lab.demo.lanes import Lane
from lab.faults.inject import FaultsTable, inject, spare_for_stalls
from lab.faults.plan import OPERATIONS


def with_time_for_faults(settings: Settings) -> Settings:
    """The settings with time enough to stall past a lease: the same for all lanes."""
    spare_s = max(settings.times.spare_s, spare_for_stalls(settings.times))
    return replace(settings, times=replace(settings.times, spare_s=spare_s))


class Faults(Stack):
    """`percent` of first deliveries meet one; all deliveries are noted in the file `journal`, if there is to be one."""

    def __init__(
        self, scope: App, id: str, settings: Settings, seed: int, percent: float, journal: str | None = None
    ) -> None:
        super().__init__(scope, id)
        self._settings, self._seed, self._percent, self._journal = settings, seed, percent, journal
        self._table = FaultsTable(self, settings=settings)

    def put_into(self, function: AppFunction, lane: Lane, timing: Timing | None = None) -> None:
        """`timing`: of a step, which may have an effect that it can stall before."""
        effect = timing is not None and OPERATIONS[function.service].effect
        inject(
            function,
            self._table,
            settings=self._settings,
            lane=lane.name,
            seed=self._seed,
            percent=self._percent,
            step_needs_s=timing.step_needs_s if timing and effect else None,
        )
        if self._journal:
            function.add_environment("FAULTS_JOURNAL", self._journal)
