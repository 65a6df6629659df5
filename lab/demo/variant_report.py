"""Report on a variant as plain data, for the terminal, the page and the JSON file. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab.demo.explain_second_mails import why_mailed_again
from lab.demo.order_history import History, Moment, order_history
from lab.variants import THIS_REPO, ExpectedOrder, Variant
from lab.variants.outcomes import Outcomes, classify

# Failures by their field of Outcomes, in words. A message in a DLQ is no failure: it is not lost.
FAILURES = {
    "charged_twice": "charged twice",
    "charged_not_recorded": "charged, not recorded",
    "lost": "lost",
    "stuck": "stuck",
    "not_mailed": "never emailed",
    "mailed_twice": "emailed twice",
}


@dataclass(frozen=True)
class Effects:
    """The effects of one order. `charges` counts successful charges."""

    order_id: str
    charges: int
    mails: int
    pays: bool
    failures: tuple[str, ...]


@dataclass(frozen=True)
class VariantReport:
    """The numbers of a variant.

    `faults` counts injected faults by function and kind, as recorded by the functions. `explained_emails` maps the id
    of an order that got a second email to the cause. `failures` holds order ids by kind.
    """

    name: str
    orders: int
    deliveries: int
    cut_short: int  # deliveries whose worker died
    dead_workers: int
    faults: Mapping[str, Mapping[str, int]]
    failures: Mapping[str, Sequence[str]]
    parked: Sequence[str]
    explained_emails: Mapping[str, str]
    violations: Sequence[str]
    effects: Sequence[Effects]
    worst: str
    order_history: Sequence[Moment]

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(ids) for name, ids in self.failures.items()}

    @property
    def unexplained_failures(self) -> dict[str, list[str]]:
        """Failures without explained second emails. A cause for an email excuses no other failure of the order."""
        return {
            name: [order_id for order_id in ids if name != "mailed_twice" or order_id not in self.explained_emails]
            for name, ids in self.failures.items()
        }

    @property
    def as_promised(self) -> bool:
        """Whether there is no violation, and no failure except explained second emails."""
        return not self.violations and not any(self.unexplained_failures.values())

    @property
    def failed_orders(self) -> int:
        """The number of orders with an unexplained failure."""
        return len({order_id for ids in self.unexplained_failures.values() for order_id in ids})


def report(
    variant: Variant,
    expected: Sequence[ExpectedOrder],
    history: History,
    *,
    second_mails: Sequence[str] = (),
    violations: Sequence[str] = (),
) -> VariantReport:
    """Report on a variant. `second_mails` and `violations` are the results of the stricter audit."""
    expected = [variant.expected(order) for order in expected]
    outcomes = classify(expected, history.observation)
    effects = _effects(expected, history, outcomes)
    addresses = {order.order_id: order.email for order in expected}
    causes = {order_id: why_mailed_again(order_id, addresses[order_id], history) for order_id in second_mails}
    explained_emails = {order_id: why for order_id, why in causes.items() if why}
    unexplained = [f"{order_id}: emailed twice, and no cause is known" for order_id, why in causes.items() if not why]
    worst = _worst(effects, history, set(explained_emails))
    return VariantReport(
        name=variant.name,
        orders=len(expected),
        deliveries=len(history.deliveries),
        cut_short=len(history.died),
        dead_workers=history.dead_workers,
        faults=_faults(history),
        failures={name: getattr(outcomes, name) for name in FAILURES},
        parked=outcomes.parked,
        explained_emails=explained_emails,
        violations=[*violations, *unexplained],
        effects=effects,
        worst=worst,
        order_history=order_history(worst, addresses[worst], history) if worst else (),
    )


def _effects(expected: Sequence[ExpectedOrder], history: History, outcomes: Outcomes) -> list[Effects]:
    paid = Counter(
        charge["metadata"].get("order_id") for charge in history.observation.charges if charge["status"] == "succeeded"
    )
    mailed = Counter(address for mail in history.observation.mails for address in mail.to)
    return [
        Effects(
            order.order_id,
            paid[order.order_id],
            mailed[order.email],
            order.pays,
            tuple(name for name in FAILURES if order.order_id in getattr(outcomes, name)),
        )
        for order in expected
    ]


def _worst(effects: Sequence[Effects], history: History, explained_emails: set[str]) -> str:
    """The order with the most failures. Among equals, the one with the most deaths, faults and deliveries."""
    deaths = Counter(each.order for each in history.died)
    faults = Counter(each.order for each in history.faults)
    deliveries = Counter(each.order for each in history.deliveries)

    def badness(each: Effects) -> tuple[int, ...]:
        money = {"charged_twice", "charged_not_recorded", "lost"} & set(each.failures)
        id = each.order_id
        failures = set(each.failures) - ({"mailed_twice"} if id in explained_emails else set())
        return len(money), len(failures), max(0, each.charges - 1), deaths[id], faults[id], deliveries[id]

    return max(effects, key=badness).order_id if effects else ""


def _faults(history: History) -> dict[str, dict[str, int]]:
    counted: dict[str, Counter[str]] = {}
    for fault in history.faults:
        counted.setdefault(fault.function, Counter())[fault.kind.value] += 1
    return {function: dict(sorted(kinds.items())) for function, kinds in sorted(counted.items())}


def as_data(run: Mapping[str, Any], variants: Sequence[VariantReport]) -> dict[str, Any]:
    """The run and its variants, for the JSON file and the page."""
    return {
        "run": dict(run),
        "variants": [
            asdict(variant)
            | {
                "counts": variant.counts,
                "unexplained_failures": variant.unexplained_failures,
                "as_promised": variant.as_promised,
                "failed_orders": variant.failed_orders,
            }
            for variant in variants
        ],
        "this_repo_as_promised": all(variant.as_promised for variant in variants if variant.name == THIS_REPO.name),
    }
