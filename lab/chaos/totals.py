"""Sum up all legs, and check that enough workers died. Pure."""

from collections import Counter
from dataclasses import dataclass

from lab.chaos.state import State

LEAST_PERCENT = 5.0  # of all deliveries, in each variant: the worker died


@dataclass(frozen=True)
class Totals:
    """`variants` holds numbers by variant. `second_mails` maps orders with a second email to the cause."""

    variants: dict[str, dict[str, int]]
    second_mails: dict[str, str]
    violations: list[str]
    seconds: int
    peak_mb: int

    def cut_short_percent(self, variant: str) -> float:
        counts = self.variants[variant]
        return 100 * counts["cut_short"] / counts["deliveries"] if counts["deliveries"] else 0.0

    @property
    def too_few_deaths(self) -> str:
        """A message that names the variants with too few deaths. Empty if there are enough."""
        variants = [variant for variant in self.variants if self.cut_short_percent(variant) < LEAST_PERCENT]
        if not variants:
            return ""
        of = " and ".join(variants)
        return f"Too few deaths: in less than {LEAST_PERCENT:g} % of the deliveries of {of} the worker died."


def totals(state: State) -> Totals:
    """Sum up the complete legs."""
    variants: dict[str, Counter[str]] = {}
    for leg in state.done:
        for variant, counts in leg["variants"].items():
            variants.setdefault(variant, Counter()).update(counts)
    return Totals(
        variants={variant: dict(counts) for variant, counts in variants.items()},
        second_mails={id: why for leg in state.done for id, why in leg["second_mails"].items()},
        violations=[each for leg in state.done for each in leg["violations"]],
        seconds=sum(leg["seconds"] for leg in state.done),
        peak_mb=max((leg["peak_mb"] for leg in state.done), default=0),
    )
