"""The pipelines that get the same orders side by side: ours, the naive one, and the one with Powertools' decorator.

A lane's outputs have ours' names behind its prefix, and `of` takes the prefix off: whatever reads ours, sends to it
or kills it (observe.py, domain.py, logs.py, kills.py) does so with any lane. Order ids are the same in all;
mails are told apart by the recipient, `buyer-1+naive@example.com`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tools.domain import order_requested
from tools.local.observe import Mail
from tools.local.running import Running

from lab.demo.audit import Expected


@dataclass(frozen=True)
class Lane:
    """`prefix`: of its outputs; `package`: where its handlers are, empty for ours."""

    name: str
    prefix: str
    package: str

    def of(self, running: Running) -> Running:
        """The deployed apps with this lane's outputs only, under ours' names."""
        others = tuple(lane.prefix for lane in LANES if lane.prefix and lane is not self)
        own = {
            name.removeprefix(self.prefix): value
            for name, value in running.outputs.items()
            if name.startswith(self.prefix) and not name.startswith(others)
        }
        return replace(running, outputs=own)

    def address(self, email: str) -> str:
        """The customer's address in this lane."""
        user, _, domain = email.partition("@")
        return f"{user}+{self.name}@{domain}" if self.package else email

    def event(self, order_id: str, order: Mapping[str, Any]) -> dict[str, Any]:
        """The event that puts an order on this lane's queue; `order` as for ours."""
        customer = {**order["customer"], "email": self.address(order["customer"]["email"])}
        return order_requested(order_id, {**order, "customer": customer}, f"c-{order_id}")

    def expected(self, order: Expected) -> Expected:
        """What is expected of an order in this lane; `order` as for ours."""
        return replace(order, email=self.address(order.email))

    def mails(self, mails: Iterable[Mail]) -> list[Mail]:
        """Those of all mails that this lane sent."""
        return [mail for mail in mails if _lane_of(mail) is self]


OURS = Lane("ours", "", "")
NAIVE = Lane("naive", "Naive", "lab.peers.naive")
POWERTOOLS = Lane("powertools", "Powertools", "lab.peers.with_powertools")
LANES = (OURS, NAIVE, POWERTOOLS)


def _lane_of(mail: Mail) -> Lane:
    users = tuple(address.partition("@")[0] for address in mail.to)
    return next((lane for lane in (NAIVE, POWERTOOLS) if any(user.endswith(f"+{lane.name}") for user in users)), OURS)
