"""Render a long run as Markdown, from its state. lab/docs/chaos.md is such a page. Pure."""

import re
from collections.abc import Callable, Mapping

from lab.chaos.leg import COPIES, RECEIVES
from lab.chaos.state import LEG, State
from lab.chaos.totals import Totals, totals
from lab.demo.variant_report import FAILURES

Row = tuple[str, Callable[[str], str]]


def page(state: State) -> str:
    """The page: parameters, numbers, and each second email with its cause."""
    sums = totals(state)
    parameters = state.parameters
    made = ", ".join(f"{name} {version}" for name, version in state.versions.items())
    so_far = f" So far, after {len(state.done)} of {len(parameters.legs)} legs:" if state.left else ""
    written = (
        f"Written by `make chaos ORDERS={parameters.orders} SEED={parameters.seed} FAULTS={parameters.faults:g}`, "
        "not by hand.\nThe same seed draws the same orders and the same plan of faults. Which faults happen depends on "
        f"timing.{so_far}"
    )
    run = (
        f"Each of two pipelines, this repository and naive, got {sums.variants['this-repo']['orders']} orders.\n"
        f"Each order was sent {COPIES} times, some late and out of order.\n"
        f"A leg has at most {LEG} orders and a local AWS of its own.\n"
        f"{parameters.faults:g} % of first deliveries were due a fault: killed workers, lost answers, throttles, 5xx, "
        f"stalls past the lease.\nAfter {RECEIVES} receives, SQS moved a message to its dead-letter queue. "
        "Every dead-letter queue was replayed each second, under new message ids.\n"
        "When all orders of a leg had been sent, all events of this repository were sent a second time.\n"
        f"The run took {sums.seconds / 60:.0f} minutes, and {sums.peak_mb} MB in the largest process."
    )
    causes = (
        "The promise allows a second email if the outcome of a send is unknown: the worker died, or the answer was "
        "lost, between send and commit.\nA dead worker held up to ten orders:"
    )
    result = "✓ This repository's pipeline is as promised" + (", so far." if state.left else ".")
    return "\n".join(
        [
            "# A long run",
            "",
            written,
            "",
            run,
            "",
            *_table(sums),
            "",
            result if not sums.violations else "✗ **Not as promised:**",
            *(f"- {each}" for each in sums.violations),
            *(["", f"✗ **{sums.too_few_deaths}**"] if sums.too_few_deaths else []),
            "",
            f"## Second emails of this repository: {len(sums.second_mails)}",
            "",
            causes,
            "",
            *_by_cause(sums.second_mails),
            "",
            f"Made with {made}.",
            "",
        ]
    )


def _by_cause(second_mails: Mapping[str, str]) -> list[str]:
    """Numbers of orders by kind of cause, with one order as an example. build/chaos.json has all orders."""
    orders: dict[str, list[str]] = {}
    for order_id, why in second_mails.items():
        orders.setdefault(kind_of_cause(why), []).append(order_id)
    by_count = sorted(orders.items(), key=lambda item: -len(item[1]))
    return [
        "| cause | orders | for example |",
        "|---|---:|---|",
        *(f"| {kind} | {len(ids)} | `{ids[0]}` |" for kind, ids in by_count),
    ]


def kind_of_cause(why: str) -> str:
    """A cause without the ids of worker and order."""
    return re.sub(r"worker \d+", "a worker", re.sub(r" for \S+?(?=;|$)", "", why))


def _table(sums: Totals) -> list[str]:
    def counted(name: str) -> Callable[[str], str]:
        return lambda variant: str(sums.variants[variant][name])

    rows: list[Row] = [
        ("orders", counted("orders")),
        ("deliveries to the workers", counted("deliveries")),
        ("… cut short by the death of the worker", lambda variant: _share(sums, variant)),
        ("workers killed", counted("dead_workers")),
        ("faults injected", counted("faults")),
        ("messages replayed from DLQs", counted("replayed")),
    ]
    rows += [(words, counted(name)) for name, words in FAILURES.items()]
    rows.append(("… of which explained", lambda variant: str(len(sums.second_mails) if variant == "this-repo" else 0)))
    rows.append(
        (
            "**failed orders**, except explained emails",
            lambda variant: f"**{sums.variants[variant]['failed_orders']}**",
        )
    )
    names = list(sums.variants)
    return [
        f"| | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
        *(f"| {words} | {' | '.join(of(variant) for variant in names)} |" for words, of in rows),
    ]


def _share(sums: Totals, variant: str) -> str:
    return f"{sums.variants[variant]['cut_short']} ({sums.cut_short_percent(variant):.1f} %)"
