"""The figures of one load and region, as data and as text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.cost import peers, this_repo
from lab.cost.pricing import Prices
from lab.cost.this_repo import Load

Counts = Mapping[str, Any]

MICRO = 1e6  # dollars an order → dollars a million orders

# Columns of the table by stage, and the units in each.
COLUMNS = {
    "DynamoDB": ("write_unit", "read_unit"),
    "Lambda": ("lambda_request", "lambda_gb_second"),
    "SQS": ("sqs_request",),
    "logs": ("log_gb", "log_gb_month"),
    "API, S3, mail": ("api_request", "s3_put", "mail"),
}


def figures(counts: Counts, load: Load, at: Prices) -> dict[str, Any]:
    """All that is told, in dollars."""
    by_stage = {stage: at.cost(bill) for stage, bill in this_repo.stages(counts, load).items()}
    storage = at.cost(this_repo.storage(counts))
    month = {
        "orders": load.orders * (sum(by_stage.values()) + storage),
        "traces": at.cost(this_repo.traces(counts, load)),
        "without any order": at.cost(this_repo.fixed(counts)),
    }
    return {
        "region": at.region,
        "prices_read_on": at.read_on,
        "prices_not_verified": list(at.unchecked),
        "orders_per_month": load.orders,
        "duplicate_rate": load.duplicates,
        "batches": load.size,
        "per_million_orders": {stage: usd * MICRO for stage, usd in by_stage.items()} | {"storage": storage * MICRO},
        "of_it_atomicity": this_repo.atomicity_usd(counts, load, at) * MICRO,
        "per_month": month | {"total": sum(month.values())},
        "from_queue_to_mail_per_month": peers.month_usd(counts, load, at),
    }


def stage_rows(counts: Counts, load: Load, at: Prices) -> list[list[str]]:
    """Dollars a million orders, by stage and service."""
    bills = {**this_repo.stages(counts, load), "storage": this_repo.storage(counts)}
    rows = []
    sums = [0.0] * (len(COLUMNS) + 2)
    for stage, bill in bills.items():
        split = [at.cost({unit: bill[unit] for unit in units if unit in bill}) for units in COLUMNS.values()]
        whole = at.cost(bill)
        amounts = [*split, whole - sum(split), whole]
        sums = [a + b for a, b in zip(sums, amounts, strict=True)]
        rows.append([stage, *map(_usd_million, amounts)])
    return [*rows, ["**sum**", *map(_usd_million, sums)]]


STAGE_HEAD = ["USD a million orders", *COLUMNS, "storage", "all"]


def peer_rows(counts: Counts, load: Load, at: Prices) -> list[list[str]]:
    """Dollars a month, and how that compares."""
    usd = peers.month_usd(counts, load, at)
    return [[name, usd_text(each), f"{each / usd[peers.THIS_REPO]:.2f}"] for name, each in usd.items()]


PEER_HEAD = ["from the queue to the mail, less receipt and mail", "USD a month", "of this repository"]


def month_rows(found: Mapping[str, Any]) -> list[list[str]]:
    return [[name, usd_text(each)] for name, each in found["per_month"].items()]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """A table whose first `texts` columns are text, the others figures."""
    lines = [head, ["---"] * texts + ["---:"] * (len(head) - texts), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def usd_text(amount: float) -> str:
    return f"{amount:,.2f}"


def _usd_million(each: float) -> str:
    return f"{each * MICRO:,.2f}" if abs(each * MICRO) >= 0.005 else "-"
