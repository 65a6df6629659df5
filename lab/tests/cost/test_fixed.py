"""What a month costs without any order."""

from pathlib import Path

from tests.harness.synth import STAGES, synthesise
from tests.stacks.test_observability import alarms, watched

from lab.cost import assumptions
from lab.cost.this_repo import QUEUES


def test_the_price_has_the_alarm_metrics_and_the_dashboard_of_the_stages_that_it_is_for(tmp_path: Path) -> None:
    prod = synthesise(tmp_path, "prod", **STAGES["prod"])
    added = tuple(
        f"{name}-" for each in prod.consumers if each.function not in QUEUES for name in (each.queue, each.function)
    )
    priced = [alarm for name, alarm in alarms(prod).items() if not name.startswith(added)]
    assert sum(len(list(watched(alarm))) for alarm in priced) == assumptions.ALARM_METRICS
    assert len(prod.of_type("AWS::CloudWatch::Dashboard")) == assumptions.DASHBOARDS
