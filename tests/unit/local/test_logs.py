"""Figures are read from what the functions said, not from what the client did."""

from tools.local.logs import counts


def emf(operation: str, **metrics: int | list[int]) -> dict[str, object]:
    names = [{"Name": name, "Unit": "Count"} for name in metrics]
    directive = {"Namespace": "EffectivelyOnce", "Dimensions": [["operation", "service"]], "Metrics": names}
    return {"_aws": {"Timestamp": 1, "CloudWatchMetrics": [directive]}, "operation": operation, **metrics}


def test_metrics_are_summed_by_operation_and_name() -> None:
    said = [emf("email.send", FirstRun=[2]), emf("email.send", FirstRun=1, Busy=3), emf("order.place", FirstRun=5)]
    assert counts(said) == {("email.send", "FirstRun"): 3, ("email.send", "Busy"): 3, ("order.place", "FirstRun"): 5}


def test_other_lines_count_nothing() -> None:
    assert counts([{"message": "done", "FirstRun": 7}]) == {}
