"""Write lab/docs/cost.md from page.md, with figures from counts, prices and assumptions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.cost import assumptions as assumed
from lab.cost import peers, table, this_repo
from lab.cost.pricing import Prices, prices
from lab.cost.table import MICRO, markdown, usd_text
from lab.cost.this_repo import Load
from lab.simulate.parameters import prod

PATH = Path(__file__).resolve().parents[1] / "docs" / "cost.md"
TEMPLATE = Path(__file__).with_suffix(".md")

Counts = Mapping[str, Any]

MONTHS = (10_000, 1_000_000, 100_000_000)
REGIONS = ("us-east-1", "eu-central-1", "eu-west-1")
ONCE_A_WORKER = "secretsmanager.GetSecretValue"
SHOWN = Load(1_000_000, 0.01)


def page(counts: Counts) -> str:
    at = prices(REGIONS[0])
    return TEMPLATE.read_text().format(
        tables=tables(counts, SHOWN, at),
        months=_months(counts),
        measured=_measured(counts),
        **_figures(counts, at),
    )


def tables(counts: Counts, load: Load, at: Prices) -> str:
    """One load in one region."""
    full = Load(load.orders, load.duplicates, full=True)
    figures, in_tens = table.figures(counts, load, at), table.figures(counts, full, at)
    alone, tens = (sum(each["per_million_orders"].values()) for each in (figures, in_tens))
    month = [[*row, other[1]] for row, other in zip(table.month_rows(figures), table.month_rows(in_tens), strict=True)]
    compared = [
        [*row, *other[1:]]
        for row, other in zip(table.peer_rows(counts, load, at), table.peer_rows(counts, full, at), strict=True)
    ]
    unseen = ", ".join(at.unchecked).replace("_", " ")
    doubtful = f" Not checked against AWS's own list: {unseen}." if unseen else ""
    return f"""## {load.orders:,.0f} orders a month in {at.region}, {load.duplicates:.0%} of all messages twice

Prices of {at.read_on}.{doubtful} USD a million orders, each message alone in its batch; in tens {usd_text(tens)}
instead of {usd_text(alone)}. Of these, {usd_text(figures["of_it_atomicity"])} are for writing in transactions.

{markdown(table.STAGE_HEAD, table.stage_rows(counts, load, at))}
{markdown(["USD a month", "alone", "in tens"], month)}
{markdown([*table.PEER_HEAD, "in tens", "of this repository"], compared)}"""


def _months(counts: Counts) -> str:
    rows = []
    for region in REGIONS:
        at = prices(region)
        for orders in MONTHS:
            loads = (Load(orders, SHOWN.duplicates), Load(orders, SHOWN.duplicates, full=True))
            usd = [this_repo.month_usd(counts, load, at) for load in loads]
            rows.append([region, f"{orders:,}", *map(usd_text, usd), *(f"{each / orders * 100:.4f}" for each in usd)])
    head = ["region", "orders a month", "USD, alone", "USD, in tens", "cents an order, alone", "in tens"]
    return "## By region and size, all of it\n\n" + markdown(head, rows)


def _measured(counts: Counts) -> str:
    names = ("write_units", "index_units", "read_units", "sqs_requests", "provider.calls", "log_bytes")
    rows = []
    for stage in this_repo.STAGES:
        of = counts["this-repo"]["alone"]
        cells = [f"{of['first'][stage].get(name, 0)} / {of['again'][stage].get(name, 0)}" for name in names]
        calls, again = (
            sum(count for call, count in of[kind][stage].items() if "." in call and call != ONCE_A_WORKER)
            for kind in ("first", "again")
        )
        rows.append([stage, f"{calls} / {again}", *cells])
    head = ["first / once more", "requests", "write units", "index units", "read units", "SQS", "provider", "log bytes"]
    what = (
        "Requests are all that are made: to DynamoDB, SQS, S3, SES and the provider. Index units are by AWS's rules, a "
        "delete and a put for each move."
    )
    return f"## Measured, one message\n\n{what}\n\n{markdown(head, rows)}"


def _figures(counts: Counts, at: Prices) -> dict[str, Any]:
    figures = table.figures(counts, SHOWN, at)
    first = counts["this-repo"]["alone"]["first"]
    index = sum(of.get("index_units", 0) for of in first.values()) * at.usd["write_unit"] * MICRO
    logs = sum(
        at.cost({unit: amount for unit, amount in bill.items() if unit.startswith("log")})
        for bill in this_repo.stages(counts, SHOWN).values()
    )
    bare = sum(peers.bare(counts, step)["write_units"] for step in this_repo.QUEUES)
    set_to = prod()
    return {
        "batches": ", ".join(
            f"{set_to.throughput(function).batch_size} in {function}" for function in this_repo.QUEUES
        ),
        "atomicity": usd_text(figures["of_it_atomicity"]),
        "whole": usd_text(sum(figures["per_million_orders"].values())),
        "index": usd_text(index),
        "logs": usd_text(logs * MICRO),
        "metrics": len(counts["metrics"]),
        "row_months": assumed.ROW_MONTHS,
        "durable": assumed.DURABLE_OPERATIONS,
        "transitions": assumed.STATE_TRANSITIONS,
        "actions": assumed.TEMPORAL_ACTIONS,
        "history": assumed.TEMPORAL_HISTORY_KB,
        "bare": bare,
    }
