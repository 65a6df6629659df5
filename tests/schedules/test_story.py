"""Short stories of many orders. `make verify` runs long ones."""

from collections.abc import Callable

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.story import tell


def test_no_story_breaks_an_invariant(
    environment: ExplorerEnvironment, record_property: Callable[[str, object], None]
) -> None:
    report = tell(environment, stories=25, steps=25, same_each_time=True)

    record_property("explored", report.row)
    assert not report.violations, "\n".join(what for _, what in report.violations)
    assert report.schedules >= 25
    assert report.met
