"""The run as a page of Markdown, from its state alone: docs/chaos.md is such a page. Pure."""

from collections.abc import Callable, Mapping

from lab.chaos.leg import COPIES, RECEIVES
from lab.chaos.state import LEG, State
from lab.chaos.totals import Totals, totals
from lab.demo.comparison import WRONGS

Row = tuple[str, Callable[[str], str]]


def page(state: State) -> str:
    """What was asked, what was found, and each second mail with its cause."""
    found = totals(state)
    asked = state.asked
    made = ", ".join(f"{name} {version}" for name, version in state.versions.items())
    so_far = f" So far, after {len(state.done)} of {len(asked.legs)} legs:" if state.left else ""
    written = (
        f"Written by `make chaos ORDERS={asked.orders} SEED={asked.seed} FAULTS={asked.faults:g}`, not by hand. The "
        f"same seed draws the same orders and the same plan of faults; which of them strike depends on timing.{so_far}"
    )
    run = (
        f"{found.lanes['ours']['orders']} orders to each of two pipelines, ours and the naive one, each sent {COPIES} "
        f"times, some late and out of order, in legs of up to {LEG} on a local AWS of their own. {asked.faults:g} % of "
        "first deliveries were due a fault: killed workers, lost answers, throttles, 5xx, stalls past the lease. After "
        f"{RECEIVES} receives a message was moved to its dead-letter queue, and every such queue was replayed each "
        "second, as a redrive does it, under new message ids. When all orders of a leg had been sent, all events of "
        f"ours so far were sent a second time. It took {found.seconds / 60:.0f} minutes, and {found.peak_mb} MB in the "
        "largest process."
    )
    window = (
        "The one window that the promise leaves: the outcome of a send was unknown, because its worker died or its "
        "answer was lost between send and commit. Each order, with what did it; a dead worker had up to ten in hand:"
    )
    return "\n".join(
        [
            "# A long run",
            "",
            written,
            "",
            run,
            "",
            *_table(found),
            "",
            f"✓ Ours kept its promise{', so far' if state.left else ''}."
            if not found.violations
            else "✗ **Not kept:**",
            *(f"- {each}" for each in found.violations),
            *(["", f"✗ **{found.too_tame}**"] if found.too_tame else []),
            "",
            f"## Mailed twice by ours: {len(found.second_mails)}",
            "",
            window,
            "",
            *_by_cause(found.second_mails),
            "",
            f"Made with {made}.",
            "",
        ]
    )


def _by_cause(second_mails: Mapping[str, str]) -> list[str]:
    orders: dict[str, list[str]] = {}
    for id, why in second_mails.items():
        orders.setdefault(why, []).append(f"`{id}`")
    return [f"- {', '.join(ids)}: {why}" for why, ids in orders.items()]


def _table(found: Totals) -> list[str]:
    def counted(name: str) -> Callable[[str], str]:
        return lambda lane: str(found.lanes[lane][name])

    rows: list[Row] = [
        ("orders", counted("orders")),
        ("deliveries to the workers", counted("deliveries")),
        ("… cut short by the worker's death", lambda lane: _share(found, lane)),
        ("workers killed", counted("dead_workers")),
        ("faults injected", counted("faults")),
        ("messages replayed from DLQs", counted("replayed")),
    ]
    rows += [(words, counted(name)) for name, words in WRONGS.items()]
    rows.append(("… of which it names itself", lambda lane: str(len(found.second_mails) if lane == "ours" else 0)))
    rows.append(
        ("**orders wronged**, but for mails that it names itself", lambda lane: f"**{found.lanes[lane]['wronged']}**")
    )
    names = list(found.lanes)
    return [
        f"| | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
        *(f"| {words} | {' | '.join(of(lane) for lane in names)} |" for words, of in rows),
    ]


def _share(found: Totals, lane: str) -> str:
    return f"{found.lanes[lane]['cut_short']} ({found.cut_short_percent(lane):.1f} %)"
