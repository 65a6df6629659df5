"""The scenarios of the simulation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lab.simulate.limits import partitions
from lab.simulate.model import Outage, Setup, Stage
from lab.simulate.parameters import PROVIDER_PER_S, SES_PER_S, prod, stages

HOUR_S = 3600.0
BEFORE_S = 600.0  # of usual business before anything happens
SEED = 2026

USUAL_TAKES = {"payments": float(PROVIDER_PER_S), "emails": float(SES_PER_S)}


@dataclass(frozen=True)
class Scenario:
    """`event_ends_s`: when what is unusual is over, from which a drain is counted."""

    name: str
    title: str
    setup: Setup
    sample_s: float = 1.0
    event_ends_s: float | None = None


def scenarios() -> list[Scenario]:
    settings = prod()
    as_set, thousand, hundred = stages(settings), stages(settings, 1_000), stages(settings, 100_000)
    base, cap = settings.times.backoff_base_s, settings.times.backoff_cap_s

    def setup(
        settings_of_stages: list[Stage],
        rate: float,
        seconds: float,
        *,
        slice_of: int = 1,
        takes: dict[str, float] | None = None,
        outage: Outage | None = None,
        burst: float | None = None,
        horizon_s: float = 24 * HOUR_S,
    ) -> Setup:
        return Setup(
            stages=settings_of_stages,
            rate_at=_burst(rate, burst) if burst else lambda _: rate,
            top_rate=burst or rate,
            arrivals_s=seconds,
            shards=partitions(rate),
            takes=takes or {},
            outage=outage,
            backoff_base_s=base,
            backoff_cap_s=cap,
            slice_of=slice_of,
            seed=SEED,
            horizon_s=horizon_s,
        )

    def down(hangs: bool) -> Outage:
        return Outage("payments", BEFORE_S, BEFORE_S + HOUR_S, hangs)

    after, long_after = BEFORE_S + 2 * HOUR_S, BEFORE_S + 4 * HOUR_S
    return [
        Scenario("steady-10", "10 a second, prod as it is", setup(as_set, 10, BEFORE_S, takes=USUAL_TAKES)),
        Scenario(
            "steady-20",
            "20 a second, prod as it is: more than SES's first rate",
            setup(as_set, 20, BEFORE_S, takes=USUAL_TAKES),
            sample_s=5,
        ),
        Scenario(
            "steady-20-wide",
            "20 a second, email with 2 workers of 5 threads",
            setup([*as_set[:2], replace(as_set[2], workers=2, batch=5, window_s=1)], 20, BEFORE_S, takes=USUAL_TAKES),
            sample_s=5,
        ),
        Scenario(
            "steady-1000-as-set",
            "1,000 a second for a minute, prod as it is, seen for five",
            setup(as_set, 1_000, 60, takes=USUAL_TAKES, horizon_s=300),
        ),
        Scenario("steady-1000", "1,000 a second, sized for it", setup(thousand, 1_000, 240, slice_of=10)),
        Scenario("steady-100000", "100,000 a second, sized for it", setup(hundred, 100_000, 240, slice_of=1_000)),
        Scenario(
            "burst-10",
            "10 a second, 1,000 for a minute, prod as it is; SES takes all",
            setup(as_set, 10, 2 * HOUR_S, takes={"payments": float(PROVIDER_PER_S)}, burst=1_000),
            sample_s=10,
            event_ends_s=BEFORE_S + 60,
        ),
        Scenario(
            "down-10-refuses",
            "10 a second, the provider refuses for an hour, prod as it is; SES takes all",
            setup(as_set, 10, after, takes={"payments": float(PROVIDER_PER_S)}, outage=down(hangs=False)),
            sample_s=20,
            event_ends_s=BEFORE_S + HOUR_S,
        ),
        Scenario(
            "down-10-hangs",
            "10 a second, the provider hangs for an hour, prod as it is; SES takes all",
            setup(as_set, 10, after, takes={"payments": float(PROVIDER_PER_S)}, outage=down(hangs=True)),
            sample_s=20,
            event_ends_s=BEFORE_S + HOUR_S,
        ),
        Scenario(
            "down-1000-refuses",
            "1,000 a second, the provider refuses for an hour, sized for it",
            setup(thousand, 1_000, long_after, slice_of=85, outage=down(hangs=False)),
            sample_s=20,
            event_ends_s=BEFORE_S + HOUR_S,
        ),
        Scenario(
            "down-100000-refuses",
            "100,000 a second, the provider refuses for an hour, sized for it",
            setup(hundred, 100_000, long_after, slice_of=8_470, outage=down(hangs=False)),
            sample_s=20,
            event_ends_s=BEFORE_S + HOUR_S,
        ),
    ]


def _burst(rate: float, burst: float) -> Callable[[float], float]:
    return lambda now: burst if BEFORE_S <= now < BEFORE_S + 60 else rate
