"""The lanes beside each other, as plain data: what the terminal, the page and the JSON file all show. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab.contrast.verdict import Verdict, judge
from lab.demo.audit import Expected
from lab.demo.lanes import OURS, Lane
from lab.demo.second_mails import why_mailed_again
from lab.demo.story import Moment, Told, story

# What a lane may do wrong, in the verdict's words and in people's. A DLQ is no wrong: nothing in it is lost.
WRONGS = {
    "charged_twice": "charged twice",
    "charged_not_recorded": "charged, not recorded",
    "lost": "lost",
    "stuck": "stuck",
    "not_mailed": "never mailed",
    "mailed_twice": "mailed twice",
}


@dataclass(frozen=True)
class Effects:
    """What an order got. `charges`: those that succeeded, for each of which the customer paid."""

    order_id: str
    charges: int
    mails: int
    pays: bool
    wrongs: tuple[str, ...]


@dataclass(frozen=True)
class LaneReport:
    """A lane's numbers; `faults`: how many struck, by function and kind, as the functions counted them themselves.

    `explained`: orders mailed twice for which the promise says so, each with what cut the first try short.
    `wrongs`: all, by kind; `unpromised`: without the mails that are explained.
    """

    name: str
    orders: int
    deliveries: int
    cut_short: int  # deliveries whose worker died
    dead_workers: int
    faults: Mapping[str, Mapping[str, int]]
    wrongs: Mapping[str, Sequence[str]]
    parked: Sequence[str]
    explained: Mapping[str, str]
    violations: Sequence[str]
    effects: Sequence[Effects]
    worst: str
    story: Sequence[Moment]

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(ids) for name, ids in self.wrongs.items()}

    @property
    def unpromised(self) -> dict[str, list[str]]:
        """A mail with a cause is what the promise names beforehand; it excuses nothing else of the same order."""
        return {
            name: [order_id for order_id in ids if name != "mailed_twice" or order_id not in self.explained]
            for name, ids in self.wrongs.items()
        }

    @property
    def kept(self) -> bool:
        """Nothing wrong, or nothing but what the promise names beforehand."""
        return not self.violations and not any(self.unpromised.values())

    @property
    def wronged(self) -> int:
        """Orders with anything wrong that no promise named beforehand."""
        return len({order_id for ids in self.unpromised.values() for order_id in ids})


def report(
    lane: Lane,
    expected: Sequence[Expected],
    told: Told,
    *,
    second_mails: Sequence[str] = (),
    violations: Sequence[str] = (),
) -> LaneReport:
    """Judge a lane by its witnesses. `second_mails` and `violations`: what the stricter audit of ours found."""
    expected = [lane.expected(order) for order in expected]
    verdict = judge(expected, told.witnessed)
    effects = _effects(expected, told, verdict)
    addresses = {order.order_id: order.email for order in expected}
    causes = {order_id: why_mailed_again(order_id, addresses[order_id], told) for order_id in second_mails}
    explained = {order_id: why for order_id, why in causes.items() if why}
    unexplained = [f"{order_id}: mailed twice, and nothing says why" for order_id, why in causes.items() if not why]
    worst = _worst(effects, told, set(explained))
    return LaneReport(
        name=lane.name,
        orders=len(expected),
        deliveries=len(told.deliveries),
        cut_short=len(told.died),
        dead_workers=told.dead_workers,
        faults=_faults(told),
        wrongs={name: getattr(verdict, name) for name in WRONGS},
        parked=verdict.parked,
        explained=explained,
        violations=[*violations, *unexplained],
        effects=effects,
        worst=worst,
        story=story(worst, addresses[worst], told) if worst else (),
    )


def _effects(expected: Sequence[Expected], told: Told, verdict: Verdict) -> list[Effects]:
    paid = Counter(
        charge["metadata"].get("order_id") for charge in told.witnessed.charges if charge["status"] == "succeeded"
    )
    mailed = Counter(address for mail in told.witnessed.mails for address in mail.to)
    return [
        Effects(
            order.order_id,
            paid[order.order_id],
            mailed[order.email],
            order.pays,
            tuple(name for name in WRONGS if order.order_id in getattr(verdict, name)),
        )
        for order in expected
    ]


def _worst(effects: Sequence[Effects], told: Told, explained: set[str]) -> str:
    """The order that was wronged most; of equals, the one that met most deaths, faults and deliveries."""
    deaths = Counter(each.order for each in told.died)
    faults = Counter(each.order for each in told.faults)
    deliveries = Counter(each.order for each in told.deliveries)

    def badness(each: Effects) -> tuple[int, ...]:
        money = {"charged_twice", "charged_not_recorded", "lost"} & set(each.wrongs)
        id = each.order_id
        wrongs = set(each.wrongs) - ({"mailed_twice"} if id in explained else set())
        return len(money), len(wrongs), max(0, each.charges - 1), deaths[id], faults[id], deliveries[id]

    return max(effects, key=badness).order_id if effects else ""


def _faults(told: Told) -> dict[str, dict[str, int]]:
    counted: dict[str, Counter[str]] = {}
    for fault in told.faults:
        counted.setdefault(fault.function, Counter())[fault.kind.value] += 1
    return {function: dict(sorted(kinds.items())) for function, kinds in sorted(counted.items())}


def as_data(run: Mapping[str, Any], lanes: Sequence[LaneReport]) -> dict[str, Any]:
    """For the JSON file: what was run, and each lane."""
    return {
        "run": dict(run),
        "lanes": [
            asdict(lane)
            | {"counts": lane.counts, "unpromised": lane.unpromised, "kept": lane.kept, "wronged": lane.wronged}
            for lane in lanes
        ],
        "ours_kept": all(lane.kept for lane in lanes if lane.name == OURS.name),
    }
