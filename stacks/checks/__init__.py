"""What can not keep the promise does not synthesise: checks over the finished templates of all stacks.

Over what is deployed, so that overrides, aspects, and resources that are not made by our constructs count as well.
docs/checks.md lists each check with its reason and source.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from stacks.checks import keys, mappings, policies, queues, stage, streams, tables, timing
from stacks.checks.model import Finding, Model

Check: TypeAlias = Callable[[Model], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *mappings.CHECKS,
    *queues.CHECKS,
    *streams.CHECKS,
    *tables.CHECKS,
    *timing.CHECKS,
    *policies.CHECKS,
    *keys.CHECKS,
    *stage.CHECKS,
)


class CanNotKeepThePromise(Exception):
    """Some checks found something; the text says all of it."""

    def __init__(self, found: Sequence[tuple[Check, Finding]]) -> None:
        self.findings = [finding for _, finding in found]
        count = "one finding" if len(found) == 1 else f"{len(found)} findings"
        head = f"This app can not keep its promise: {count}. Nothing was synthesised."
        super().__init__("\n\n".join([head, *(_paragraph(check, finding) for check, finding in found)]))


def check(model: Model) -> None:
    """Raises CanNotKeepThePromise with every finding."""
    if found := [(check, finding) for check in CHECKS for finding in check(model)]:
        raise CanNotKeepThePromise(found)


def _paragraph(check: Check, finding: Finding) -> str:
    first, _, rest = finding.says.partition(" ")
    says = f"{first.capitalize() if first.islower() else first} {rest}"  # a property keeps its spelling
    text = f"{says}. {finding.why} {finding.do}"
    # Words stay whole, so that paths can be searched for.
    lines = textwrap.wrap(text, 108, break_long_words=False, break_on_hyphens=False)
    return "\n  ".join([f"{finding.resource}  ({check.__name__})", *lines])
