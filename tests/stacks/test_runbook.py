"""The runbook's first table has every alarm, and sends its reader where the alarm itself does."""

import re

from tests.e2e import book
from tests.stacks.synth import Synthesised
from tests.stacks.test_observability import alarms


def test_every_alarm_is_in_the_runbooks_table_with_the_section_that_it_names(prod: Synthesised) -> None:
    table = {
        name: re.findall(r"\(#([^)]+)\)", line)
        for line in book.sections()["Start here"].splitlines()
        for name in re.findall(r"`([^`]+)`", line)
    }
    said = {name: alarm["AlarmDescription"].partition("#")[2] for name, alarm in alarms(prod).items()}
    assert set(table) == set(said)
    for name, section in said.items():
        assert table[name][0] == section, name
