"""Prices what was counted. An amount of a billed unit an order is a `Bill`; a price table turns it into dollars."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.cost import assumptions as assumed

PRICES = Path(__file__).with_name("prices.json")

Bill = dict[str, float]  # billed unit, by its name in the price table → amount


class UnknownRegion(KeyError):
    """The price table has no such region."""


@dataclass(frozen=True)
class Prices:
    """One region's, in dollars a unit."""

    region: str
    read_on: str
    usd: Mapping[str, float]
    unchecked: tuple[str, ...]  # whose figure was not seen in print
    temporal: Mapping[str, Any]

    def cost(self, bill: Mapping[str, float]) -> float:
        """Dollars. Raises KeyError for a unit without a price."""
        return sum(amount * self.usd[unit] for unit, amount in bill.items())

    def temporal_month(self, actions: float, storage_usd: float) -> float:
        """Dollars a month for so many Actions, the plan included, storage added."""
        left, usd, below = max(0.0, actions - self.temporal["included"]), 0.0, 0.0
        tiers = self.temporal["tiers"]
        for upto, per_million in tiers:
            taken = min(left, upto - below)
            usd, left, below = usd + taken * per_million / 1e6, left - taken, upto
        usd += left * tiers[-1][1] / 1e6 + storage_usd
        return float(usd + max(self.temporal["plan_month"], self.temporal["plan_share"] * usd))


def prices(region: str, table: Mapping[str, Any] | None = None) -> Prices:
    """Raises UnknownRegion, naming those there are."""
    entries = table or json.loads(PRICES.read_text())
    regions = list(next(iter(entries["prices"].values()))["usd"])
    if region not in regions:
        raise UnknownRegion(f"no prices for {region}: {', '.join(regions)}")
    return Prices(
        region=region,
        read_on=entries["read_on"],
        usd={name: entry["usd"][region] / entry["per"] for name, entry in entries["prices"].items()},
        unchecked=tuple(name for name, entry in entries["prices"].items() if region in entry["unchecked"]),
        temporal=entries["temporal_actions"],
    )


def seconds_of(counts: Mapping[str, float], at_once: int = 1) -> float:
    """How long one invocation takes: its requests one after the other, `at_once` messages side by side."""
    waited = sum(count * assumed.LATENCY_MS.get(call, 0) for call, count in counts.items())
    steps = counts.get("dynamodb.TransactWriteItems", 0) + counts.get("dynamodb.UpdateItem", 0) > 0
    return (waited / at_once + assumed.OVERHEAD_MS + (assumed.STEP_CPU_MS if steps else 0)) / 1000


def bill_of(counts: Mapping[str, float], messages: int, *, at_once: int = 1, queue: bool = False) -> Bill:
    """What one message is billed, from counts of invocations that took `messages` of them.

    `at_once`: messages that an invocation serves side by side; `queue`: they came from one that Lambda polls.
    """
    runs = counts["invocations"]
    logged = counts.get("log_bytes", 0) + assumed.LOG_EVENT_BYTES * counts.get("log_lines", 0)
    logged += runs * (assumed.PLATFORM_LOG_BYTES + assumed.PLATFORM_LOG_LINES * assumed.LOG_EVENT_BYTES)
    each_run = {call: count / runs for call, count in counts.items()}
    whole = {
        "lambda_request": runs,
        "lambda_gb_second": runs * assumed.MEMORY_GB * seconds_of(each_run, at_once),
        "write_unit": counts.get("write_units", 0) + counts.get("index_units", 0),
        "read_unit": counts.get("read_units", 0) + counts.get("read_half_units", 0) / 2,
        "sqs_request": counts.get("sqs_requests", 0) + (assumed.POLLER_REQUESTS * runs if queue else 0),
        "s3_put": counts.get("s3.PutObject", 0),
        "mail": counts.get("sesv2.SendEmail", 0),
        "log_gb": logged / assumed.GB,
        "log_gb_month": logged / assumed.GB * assumed.LOG_MONTHS,
    }
    return {unit: amount / messages for unit, amount in whole.items() if amount}


def times(bill: Bill, factor: float) -> Bill:
    return {unit: amount * factor for unit, amount in bill.items()}


def total(bills: Iterable[Bill]) -> Bill:
    whole: Bill = {}
    for bill in bills:
        for unit, amount in bill.items():
            whole[unit] = whole.get(unit, 0) + amount
    return whole


def traces_a_month(invocations_a_month: float) -> float:
    """Traces that X-Ray records of one function. https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html"""
    first = min(invocations_a_month, assumed.TRACED_PER_S * assumed.MONTH_S)
    return first + assumed.TRACED_SHARE * (invocations_a_month - first)


def idle_polls(queues: int) -> float:
    """Requests a month that finding nothing costs."""
    return queues * assumed.IDLE_POLLERS * assumed.MONTH_S / assumed.IDLE_POLL_S
