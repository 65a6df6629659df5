"""The cost of an order in this repository, by stage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.cost import assumptions as assumed
from lab.cost.pricing import Bill, Prices, bill_of, idle_polls, times, total, traces_a_month

Counts = Mapping[str, Any]

QUEUES = ("order", "payment", "email")  # functions that empty one
STAGES = ("api", "relay after api", "order", "relay after order", "payment", "relay after payment", "email")
ENTRANCE = ("api", "relay after api")  # before the first queue
TENS = 10


@dataclass(frozen=True)
class Load:
    """Orders a month, and the share of messages that come once more, at each stage."""

    orders: float
    duplicates: float
    full: bool = False  # batches of ten; without, each message is alone in its batch

    @property
    def size(self) -> str:
        return "tens" if self.full else "alone"

    @property
    def messages(self) -> int:
        return TENS if self.full else 1


def stages(counts: Counts, load: Load) -> dict[str, Bill]:
    """What each stage bills for one order, its share of duplicates included."""
    return {stage: stage_bill(counts["this-repo"][load.size], stage, load) for stage in STAGES}


def stage_bill(of: Counts, stage: str, load: Load) -> Bill:
    """`of`: counts with `first` and `again`."""
    at_once = load.messages if stage in QUEUES else 1
    bills = []
    for kind in ("first", "again"):
        bill = bill_of(of[kind][stage], load.messages, at_once=at_once, queue=stage in QUEUES)
        if stage == "api":
            bill = total([bill, {"api_request": 1, "log_gb": assumed.ACCESS_LOG_BYTES / assumed.GB}])
        bills.append(bill)
    first, again = bills
    return total([first, times(again, load.duplicates)])


def storage(counts: Counts) -> Bill:
    """What an order leaves behind, and for how long it is paid for."""
    size = {name: count / assumed.GB for name, count in counts["bytes"].items()}
    stored = size["row"] * assumed.ROW_MONTHS + size["records"] * assumed.RECORD_MONTHS
    return {
        "table_gb_month": stored,
        "backup_gb_month": stored,
        "s3_gb_month": size["receipt"] * assumed.ROW_MONTHS,
    }


def traces(counts: Counts, load: Load) -> Bill:
    """X-Ray, a month."""
    of = counts["this-repo"][load.size]
    runs = total(
        times({stage.partition(" ")[0]: of[kind][stage]["invocations"]}, share)
        for stage in STAGES
        for kind, share in (("first", 1), ("again", load.duplicates))
    )
    return {"trace": sum(traces_a_month(load.orders * each / load.messages) for each in runs.values())}


def fixed(counts: Counts) -> Bill:
    """What a month costs without any order."""
    return total(
        [
            times(bill_of(counts["sweep"], 1), assumed.SWEEPS_PER_MONTH),
            {
                "sqs_request": idle_polls(len(QUEUES)),
                "metric_month": len(counts["metrics"]),
                "alarm_month": assumed.ALARM_METRICS,
                "dashboard_month": assumed.DASHBOARDS,
                "secret_month": assumed.SECRETS,
            },
        ]
    )


def month_usd(counts: Counts, load: Load, at: Prices) -> float:
    """Dollars a month, all of it."""
    each = sum(at.cost(bill) for bill in stages(counts, load).values()) + at.cost(storage(counts))
    return load.orders * each + at.cost(traces(counts, load)) + at.cost(fixed(counts))


def atomicity_usd(counts: Counts, load: Load, at: Prices) -> float:
    """Dollars an order: what it costs that a transaction writes each item twice."""
    units: float = sum(
        of["write_units_for_atomicity"] * share
        for kind, share in (("first", 1), ("again", load.duplicates))
        for of in counts["this-repo"]["alone"][kind].values()
        if "write_units_for_atomicity" in of
    )
    return units * at.usd["write_unit"]
