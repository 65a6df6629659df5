"""Write lab/docs/scale.md from page.md, and the plots.

All figures come from the measured counts, the limits and the runs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared.orders.row import OPEN_SHARDS

from lab.cost.table import markdown
from lab.simulate import plots
from lab.simulate.limits import IN_FLIGHT, PARTITION_UNITS, RATES, Limit, limits, partitions, relay_per_s, units
from lab.simulate.model import HANGS_S, POLL_S, RAMP_PER_S, REFUSED_S, START_WORKERS, Stage
from lab.simulate.parameters import BUSY, MAPPING_LIMIT, QUEUES, prod, service_s, stages
from lab.simulate.runs import RunSummary
from lab.simulate.scenarios import SEED

HTML = Path("build/simulate.html")
PATH = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
TEMPLATE = Path(__file__).with_suffix(".md")


def write(ran: Sequence[RunSummary]) -> None:
    HTML.parent.mkdir(exist_ok=True)
    HTML.write_text(plots.page(ran))
    PATH.write_text(page(ran))


def page(ran: Sequence[RunSummary]) -> str:
    limit_list = list(limits())
    return TEMPLATE.read_text().format(
        limits=_limits(limit_list), runs=_runs(ran), **_of_limits(limit_list), **_of_runs(ran)
    )


def _limits(limit_list: Sequence[Limit]) -> str:
    rows = [
        [
            limit.hop,
            f"[{limit.what}]({limit.source})",
            limit.moved_by,
            limit.unit,
            f"{limit.orders_per_s:,.0f}",
            *(_amount(limit.needs(rate)) for rate in RATES),
        ]
        for limit in limit_list
    ]
    head = ["hop", "limit", "moved by", "in", "stops at", *(f"{rate:,}/s take" for rate in RATES)]
    return markdown(head, rows, texts=4)


def _of_limits(limit_list: Sequence[Limit]) -> dict[str, Any]:
    at = {(limit.hop, limit.unit): limit.orders_per_s for limit in limit_list}
    settings = prod()
    record_units = units("write_units of idempotency")
    services = ", ".join(f"{service_s(queue) * 1000:,.0f} ms ({queue})" for queue in QUEUES)
    return {
        "rates": ", ".join(f"{rate:,}" for rate in RATES),
        "partition": PARTITION_UNITS,
        "shards": OPEN_SHARDS,
        "p10": partitions(RATES[0]),
        "p1000": partitions(RATES[1]),
        "p100000": partitions(RATES[2]),
        "outbox": PARTITION_UNITS / record_units * len(QUEUES),
        "relay": relay_per_s(),
        "in_flight": IN_FLIGHT,
        "api": settings.api_rate,
        "payments": at["payments", "workers"],
        "emails": at["emails", "mails/s"],
        "new": min(limit.orders_per_s for limit in limit_list if limit.hop == "records table"),
        "index": at["open-orders index", "index units/s"],
        "index_keys": RATES[2] * units("index_units") / PARTITION_UNITS,
        "table": max(limit.orders_per_s for limit in limit_list if limit.hop == "records table"),
        "account": at["account", "workers"],
        "busy": BUSY,
        "mapping": MAPPING_LIMIT,
        "retention": settings.times.source_retention_s / 86_400,
        "start": START_WORKERS,
        "ramp": RAMP_PER_S,
        "poll": POLL_S,
        "services": services,
        "refused": REFUSED_S,
        "hangs": HANGS_S,
        "seed": SEED,
    }


def _runs(ran: Sequence[RunSummary]) -> str:
    head = [
        "run",
        "slice",
        "orders",
        "p50",
        "p99",
        "longest",
        *(f"most on {queue}" for queue in QUEUES),
        "most in flight, payments",
        "tries refused for rate",
        "most receives",
        "parked",
        "left",
        "payments drained after",
    ]
    rows = [
        [
            each.title,
            f"1/{each.slice_of:,}",
            f"{each.orders:,}",
            *(f"{seconds:,.1f}" for seconds in (each.p50_s, each.p99_s, each.longest_s)),
            *(f"{each.most_backlog[queue]:,}" for queue in QUEUES),
            f"{each.most_in_flight['payments']:,}",
            f"{sum(each.throttled.values()):,}",
            ", ".join(f"{most} of {each.max_receives[name]} ({name})" for name, most in each.most_receives.items()),
            f"{each.parked:,}",
            f"{each.left:,}",
            _minutes(each.drained_s),
        ]
        for each in ran
    ]
    return markdown(head, rows)


def _of_runs(ran: Sequence[RunSummary]) -> dict[str, Any]:
    by = {each.name: each for each in ran}
    outages = [each for each in ran if each.name.startswith("down")]
    if any(each.parked or each.left for each in outages):
        raise ValueError("the page says that nothing is parked in an outage, and something was")
    hundred = stages(prod(), RATES[2])
    return {
        "worst": max(each.most_receives["payments"] for each in outages),
        "receives": outages[0].max_receives["payments"],
        "drain_refuses": _minutes(by["down-10-refuses"].drained_s),
        "drain_1000": _minutes(by["down-1000-refuses"].drained_s),
        "longest_min": max(each.longest_s for each in ran) / 60,
        "sweep_min": prod().times.sweep_age_s / 60,
        "drain_burst": _minutes(by["burst-10"].drained_s),
        "burst_throttled": sum(by["burst-10"].throttled.values()),
        "wide": by["steady-20-wide"].throttled["emails"],
        "wide_receives": by["steady-20-wide"].most_receives["emails"],
        "narrow": by["steady-20"].throttled.get("emails", 0),
        "mappings": hundred[1].mappings,
        "ramp_1000_s": _ramp_s(stages(prod(), RATES[1])[1]),
        "ramp_100000_s": _ramp_s(hundred[1]),
        "workers": round(sum(stage.workers for stage in hundred), -3),
    }


def _ramp_s(stage: Stage) -> float:
    return (stage.workers / stage.mappings - START_WORKERS) / RAMP_PER_S


def _amount(needed: float) -> str:
    return f"{needed:,.0f}" if needed >= 10 else f"{needed:,.1f}"


def _minutes(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / 60:,.0f} min"
