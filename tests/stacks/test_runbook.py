"""The runbook's first table has every alarm, and sends its reader where the alarm itself does."""

import re
from collections.abc import Iterator

from tests.harness import runbook
from tests.harness.synth import Synthesised
from tests.stacks.test_observability import alarms


def meant(name: str, found: Synthesised) -> Iterator[str]:
    """The alarms that a name in the table may stand for: `<queue>` is any queue, `<function>` any function."""
    for queue in [consumer.queue for consumer in found.consumers]:
        for function in found.functions:
            yield name.replace("<queue>", queue).replace("<function>", function)


def test_every_alarm_is_in_the_runbooks_table_with_the_section_that_it_names(prod: Synthesised) -> None:
    table = {
        name: re.findall(r"\(#([^)]+)\)", line)[0]
        for line in runbook.sections()["Start here"].splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line)
    }
    said = {name: alarm["AlarmDescription"].partition("#")[2] for name, alarm in alarms(prod).items()}
    sections = {alarm: table[name] for name in sorted(table, key=len) for alarm in meant(name, prod) if alarm in said}
    sections |= {name: section for name, section in table.items() if name in said}  # its own row comes first
    assert sections == said
    for name in table:
        assert said.keys() & set(meant(name, prod)), f"no alarm is called {name}"
