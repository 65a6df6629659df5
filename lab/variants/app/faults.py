"""Wrap the functions of all variants with faults, by one seed and one fault table."""

from dataclasses import replace

from aws_cdk import App, Stack
from stacks.constructs.function import AppFunction
from stacks.settings import Settings
from stacks.times import Timing

from lab.faults.inject import FaultTableConstruct, inject, spare_for_stalls
from lab.faults.plan import OPERATIONS
from lab.variants import Variant


def with_time_for_faults(settings: Settings) -> Settings:
    """Settings with enough spare time to stall past a lease, for all variants."""
    spare_s = max(settings.times.spare_s, spare_for_stalls(settings.times))
    return replace(settings, times=replace(settings.times, spare_s=spare_s))


class Faults(Stack):
    """`percent` of first deliveries meet a fault. Functions record all deliveries in the file `journal`, if given."""

    def __init__(
        self, scope: App, id: str, settings: Settings, seed: int, percent: float, journal: str | None = None
    ) -> None:
        super().__init__(scope, id)
        self._settings, self._seed, self._percent, self._journal = settings, seed, percent, journal
        self._table = FaultTableConstruct(self, settings=settings)

    def wrap(self, function: AppFunction, variant: Variant, timing: Timing | None = None) -> None:
        """Wrap a function. `timing` is that of a step, which may stall before its outside effect."""
        effect = timing is not None and OPERATIONS[function.service].effect
        inject(
            function,
            self._table,
            settings=self._settings,
            variant=variant.name,
            seed=self._seed,
            percent=self._percent,
            step_needs_s=timing.step_needs_s + timing.reserve_s if timing and effect else None,
        )
        if self._journal:
            function.add_environment("FAULTS_JOURNAL", self._journal)
