"""Checks that the finished templates of all stacks keep the guarantees. `plugin.py` runs them at synth.

The checks read what is deployed. So they see property overrides, aspects, and resources of any construct.
docs/checks.md lists each check with its reason and source.
"""

from collections.abc import Callable, Iterator
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
