"""The pipelines that get the same orders side by side: this repository, the naive one, and the one with Powertools.

The outputs of another variant carry a prefix. `Variant.of` removes the prefix, so that every tool that reads, feeds or
kills this repository's pipeline works with any variant. An order has the same id in all variants. Emails differ by
recipient: `buyer-1+naive@example.com`.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tools.domain import order_requested
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import Mail


@dataclass(frozen=True)
class ExpectedOrder:
    """An accepted order. `amount` is in minor units. `email` belongs to this order only."""

    order_id: str
    email: str
    amount: int
    currency: str
    pays: bool  # False: the card is declined


@dataclass(frozen=True)
class Variant:
    """A pipeline. `prefix` starts its output names. `package` holds its handlers; it is empty for this repository."""

    name: str
    prefix: str
    package: str

    def of(self, running: LocalDeployment) -> LocalDeployment:
        """The deployed apps with the outputs of this variant only, without the prefix."""
        others = tuple(variant.prefix for variant in VARIANTS if variant.prefix and variant is not self)
        own = {
            name.removeprefix(self.prefix): value
            for name, value in running.outputs.items()
            if name.startswith(self.prefix) and not name.startswith(others)
        }
        return replace(running, outputs=own)

    def address(self, email: str) -> str:
        """The customer's address in this variant."""
        user, _, domain = email.partition("@")
        return f"{user}+{self.name}@{domain}" if self.package else email

    def event(self, order_id: str, order: Mapping[str, Any]) -> dict[str, Any]:
        """The event that puts an order on the queue of this variant. `order` is the one of this repository."""
        customer = {**order["customer"], "email": self.address(order["customer"]["email"])}
        return order_requested(order_id, {**order, "customer": customer}, f"c-{order_id}")

    def expected(self, order: ExpectedOrder) -> ExpectedOrder:
        """The expected order with the address of this variant."""
        return replace(order, email=self.address(order.email))

    def mails(self, mails: Iterable[Mail]) -> list[Mail]:
        """The emails that this variant sent, out of all emails."""
        return [mail for mail in mails if _variant_of(mail) is self]


THIS_REPO = Variant("this-repo", "", "")
NAIVE = Variant("naive", "Naive", "lab.naive")
POWERTOOLS = Variant("powertools", "Powertools", "lab.with_powertools")
VARIANTS = (THIS_REPO, NAIVE, POWERTOOLS)


def _variant_of(mail: Mail) -> Variant:
    users = tuple(address.partition("@")[0] for address in mail.to)
    others = (NAIVE, POWERTOOLS)
    return next((each for each in others if any(user.endswith(f"+{each.name}") for user in users)), THIS_REPO)


def synth_arguments(
    seed: int | None = None, percent: float = 0, journal: Path | None = None, variants: Sequence[Variant] | None = None
) -> list[str]:
    """Arguments of `cdk synth` that deploy the variants.

    With a `seed`, `percent` of the messages meet a fault. `journal` is the file for all deliveries. Without `variants`,
    all variants are deployed.
    """
    arguments = ["--app", f"{sys.executable} -m lab.variants.app"]
    if seed is not None:
        arguments += ["-c", f"faults_seed={seed}", "-c", f"faults_percent={percent}"]
    if journal is not None:
        arguments += ["-c", f"faults_journal={journal}"]
    if variants is not None:
        arguments += ["-c", f"variants={','.join(variant.name for variant in variants)}"]
    return arguments
