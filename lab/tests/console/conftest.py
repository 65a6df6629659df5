"""Requests to the page's app without a server, and snapshots with given states."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message
from tools.local.observe import QUEUES, Depth, Mail

from lab.console.sent_orders import SentOrder, SentOrders
from lab.console.snapshot import Snapshot, VariantSnapshot
from lab.faults.fault_table import InjectedFault
from lab.faults.journal import Delivery
from lab.variants import NAIVE, THIS_REPO, Variant
from lab.variants.observation import Observation

HOST = "127.0.0.1:8080"
WITHIN_S = 10.0  # an endless answer would be no refusal


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str


def ask(app: ASGIApp, method: str, path: str, **headers: str | None) -> Answer:
    """One request. Host is the page's own unless another is given; underscores in header names are hyphens."""
    sent = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value is not None],
    }
    came: list[Message] = []

    asked: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not asked:
            await asyncio.Event().wait()  # the browser stays
        return asked.pop()

    async def send(message: Message) -> None:
        came.append(message)

    async def call() -> None:
        await app(scope, receive, send)

    asyncio.run(asyncio.wait_for(call(), WITHIN_S))
    start = came[0]
    told = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], told, b"".join(message.get("body", b"") for message in came[1:]).decode())


def row(entry: SentOrder, state: str, **more: Any) -> dict[str, Any]:
    return {"order_id": entry.order_id, "state": state, **more}


def done(entry: SentOrder) -> dict[str, Any]:
    return row(entry, "paid", mailed_at="2026-01-01T00:00:03Z")


def charges(entry: SentOrder, count: int = 1) -> list[dict[str, Any]]:
    made = {"status": "succeeded", "amount": 2500, "currency": "eur", "created": 1_767_225_601}
    return [{"id": f"ch_{n}", "metadata": {"order_id": entry.order_id}, **made} for n in range(count)]


def mails(variant: Variant, entry: SentOrder, count: int = 1) -> list[Mail]:
    address = variant.address(entry.expected.email)
    return [Mail((address,), "Receipt", "", f"m-{n}", 1_767_225_602_000) for n in range(count)]


def seen(
    variant: Variant,
    *,
    rows: Iterable[dict[str, Any]] = (),
    charged: Iterable[dict[str, Any]] = (),
    mailed: Iterable[Mail] = (),
    waiting: Iterable[SentOrder] = (),
    parked: Iterable[SentOrder] = (),
    deliveries: Sequence[Delivery] = (),
    faults: Sequence[InjectedFault] = (),
    busy: dict[str, int] | None = None,
    provider: bool = True,
) -> VariantSnapshot:
    """A variant; its queues hold nothing but what `waiting` and `parked` name, on the payments queue."""
    on_the_way = frozenset(entry.order_id for entry in waiting)
    dead = frozenset(entry.order_id for entry in parked)
    return VariantSnapshot(
        variant,
        Observation(list(charged), list(mailed), list(rows), on_the_way, dead),
        {name: Depth(len(on_the_way) if name == "Payments" else 0, 0, 0) for name in QUEUES},
        {name: len(dead) if name == "Payments" else 0 for name in QUEUES},
        deliveries,
        faults,
        busy or {},
        provider,
    )


def snapshot(
    sent_orders: SentOrders, naive: VariantSnapshot | None = None, this_repo: VariantSnapshot | None = None
) -> Snapshot:
    variants = (naive or seen(NAIVE), this_repo or seen(THIS_REPO))
    return Snapshot(sent_orders.run, sent_orders.all(), sent_orders.total, sent_orders.armed, variants)
