"""What is watched is there: each metric by name and dimension, each log field, each resource, each runbook section."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stacks.constructs.queries import ORDER
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.observability import ObservabilityStack
from stacks.pipeline import PipelineStack, Provider
from stacks.settings import settings_from
from stacks.stateful import StatefulStack
from stacks.times import RequestBudget, SettingsError
from tests.harness.every_path import EveryPath, Line
from tests.harness.synth import ROOT, SECRET_ARN, STAGES, Properties, Synthesised, new_app, read, synthesise

OURS = "EffectivelyOnce"

# AWS's own metrics: by which dimension they come, and what has that name; and the page that says so.
AWS_METRICS: dict[str, tuple[str, str, set[str]]] = {
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    "AWS/SQS": (
        "QueueName",
        "AWS::SQS::Queue",
        {
            "ApproximateAgeOfOldestMessage",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesVisible",
        },
    ),
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    "AWS/Lambda": (
        "FunctionName",
        "AWS::Lambda::Function",
        {"ConcurrentExecutions", "Duration", "Errors", "Invocations", "IteratorAge", "Throttles"},
    ),
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html
    "AWS/ApiGateway": ("ApiId", "AWS::ApiGatewayV2::Api", {"4xx", "5xx", "Count", "Latency"}),
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
    "AWS/DynamoDB": (
        "TableName",
        "AWS::DynamoDB::Table",
        {"ReadThrottleEvents", "TransactionConflict", "WriteThrottleEvents"},
    ),
}

Metric = tuple[str, str, frozenset[tuple[str, str]]]  # namespace, name, dimensions


def alarms(found: Synthesised) -> dict[str, Properties]:
    """By name, without what all names of the stage begin with."""
    prefix = f"effectively-once-{found.stage}-"
    return {
        alarm["AlarmName"].removeprefix(prefix): alarm for alarm in found.of_type("AWS::CloudWatch::Alarm").values()
    }


def watched(alarm: Properties) -> Iterator[Metric]:
    """The metrics that an alarm reads, by itself or in its formula."""
    read = [metric["MetricStat"]["Metric"] for metric in alarm.get("Metrics", []) if "MetricStat" in metric]
    for metric in read or [alarm]:
        dimensions = frozenset((one["Name"], one["Value"]) for one in metric["Dimensions"])
        yield metric["Namespace"], metric["MetricName"], dimensions


def widgets(found: Synthesised) -> list[Properties]:
    """The widgets of the one dashboard, from top to bottom. Stage sandbox has no dashboard."""
    boards = found.of_type("AWS::CloudWatch::Dashboard").values()
    assert len(boards) == (found.stage != "sandbox")
    return [widget for board in boards for widget in json.loads(board["DashboardBody"])["widgets"]]


def drawn(found: Synthesised) -> Iterator[Metric]:
    """The metrics that the dashboard draws."""
    for widget in widgets(found):
        for metric in widget["properties"].get("metrics", []):
            namespace, name, *dimensions = [part for part in metric if isinstance(part, str)]
            yield namespace, name, frozenset(zip(dimensions[::2], dimensions[1::2], strict=True))


def emitted(run: EveryPath) -> set[Metric]:
    """The metrics in what the functions printed."""
    return {
        (directive["Namespace"], metric["Name"], frozenset((name, line[name]) for name in dimensions))
        for line in run.emitted
        for directive in line["_aws"]["CloudWatchMetrics"]
        for dimensions in directive["Dimensions"]
        for metric in directive["Metrics"]
    }


def ours(metrics: Iterator[Metric]) -> set[Metric]:
    return {metric for metric in metrics if metric[0] == OURS}


def test_the_dashboard_draws_what_the_functions_emit_and_nothing_else_by_name_and_dimension(
    prod: Synthesised, every_path: EveryPath
) -> None:
    real, shown = emitted(every_path), ours(drawn(prod))
    assert shown - real == set(), "drawn and never emitted"
    assert real - shown == set(), "emitted and drawn nowhere"


def test_every_metric_of_ours_that_an_alarm_reads_is_emitted(prod: Synthesised, every_path: EveryPath) -> None:
    for name, alarm in alarms(prod).items():
        assert ours(watched(alarm)) <= emitted(every_path), name


def test_every_metric_of_awss_is_one_that_aws_documents_of_a_resource_that_is_there(any_stage: Synthesised) -> None:
    read = [metric for alarm in alarms(any_stage).values() for metric in watched(alarm)] + list(drawn(any_stage))
    assert {namespace for namespace, _, _ in read} <= {OURS, *AWS_METRICS}
    for namespace, name, dimensions in read:
        if namespace == OURS:
            continue
        dimension, kind, names = AWS_METRICS[namespace]
        assert name in names
        ((found, value),) = dimensions
        resource = value.removeprefix("<").removesuffix(">").removesuffix(".QueueName")
        assert found == dimension
        assert resource in any_stage.of_type(kind), f"{name} of {value}"


def test_every_alarm_ends_with_a_section_that_the_runbook_has(any_stage: Synthesised) -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    sections = {
        re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text.lower(), re.M)
    }
    for name, alarm in alarms(any_stage).items():
        meaning, _, link = alarm["AlarmDescription"].rpartition(" ")
        assert re.fullmatch(r"[A-Z].+\.", meaning), name
        page, _, section = link.partition("#")
        assert page == "docs/runbook.md"
        assert section in sections, f"{name} leads to {section}"


def test_the_runbooks_address_and_who_is_told_can_be_given(tmp_path: Path, prod: Synthesised) -> None:
    context = {"runbook_url": "https://wiki.example.com/runbook", "alarm_email": "on-call@example.com"}
    found = synthesise(tmp_path, "prod", **STAGES["prod"], **context)

    for alarm in alarms(found).values():
        assert " https://wiki.example.com/runbook#" in alarm["AlarmDescription"]
    (subscription,) = found.of_type("AWS::SNS::Subscription").values()
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "on-call@example.com")
    assert prod.of_type("AWS::SNS::Subscription") == {}
    with pytest.raises(SettingsError, match="alarm_email 'on-call' is not an email address"):
        settings_from({"stage": "prod", **STAGES["prod"], "alarm_email": "on-call"}.get)


def test_every_alarm_tells_the_topic_that_it_rings_and_that_it_is_over(any_stage: Synthesised) -> None:
    for alarm in alarms(any_stage).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == ["<AlarmTopic>"]


def test_the_topic_takes_alarms_of_its_own_account_over_tls(any_stage: Synthesised) -> None:
    denied, allowed = any_stage.one("AWS::SNS::TopicPolicy", "AlarmTopic/Policy")["PolicyDocument"]["Statement"]
    assert (denied["Effect"], denied["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert (allowed["Effect"], allowed["Action"], allowed["Resource"]) == ("Allow", "sns:Publish", "<AlarmTopic>")
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "<AWS::AccountId>"},
        "ArnLike": {"aws:SourceArn": "arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>:alarm:*"},
    }


def test_every_queue_that_ends_a_message_rings_at_the_first_one_and_silence_is_no_all_clear(
    any_stage: Synthesised,
) -> None:
    queues = any_stage.of_type("AWS::SQS::Queue").values()
    ends = {queue["RedrivePolicy"]["deadLetterTargetArn"] for queue in queues if "RedrivePolicy" in queue}
    for mapping in any_stage.of_type("AWS::Lambda::EventSourceMapping").values():
        if "DestinationConfig" in mapping:
            ends.add(mapping["DestinationConfig"]["OnFailure"]["Destination"])
    assert len(ends) == len(any_stage.consumers) + 1

    ringing = {
        alarm["Dimensions"][0]["Value"].replace(".QueueName", ".Arn"): alarm
        for alarm in alarms(any_stage).values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
    }
    assert set(ringing) == ends
    for alarm in ringing.values():
        assert (alarm["Statistic"], alarm["ComparisonOperator"]) == ("Maximum", "GreaterThanThreshold")
        assert (alarm["Threshold"], alarm["Period"], alarm["EvaluationPeriods"]) == (0, 60, 1)
        assert alarm["TreatMissingData"] == "ignore"


def test_all_other_silence_is_quiet_but_the_sweeps(any_stage: Synthesised) -> None:
    by_silence: dict[str, set[str]] = {}
    for name, alarm in alarms(any_stage).items():
        by_silence.setdefault(alarm["TreatMissingData"], set()).add(name)
    assert set(by_silence) == {"ignore", "notBreaching", "breaching"}
    assert by_silence["ignore"] == {"relay-parked", *(f"{each.queue}-parked" for each in any_stage.consumers)}
    assert by_silence["breaching"] == {"sweep-silent"}


@pytest.mark.parametrize("queue", ["Orders", "Payments", "Emails"])
def test_a_message_is_late_when_three_workers_could_have_died_with_it(any_stage: Synthesised, queue: str) -> None:
    visibility = any_stage.one("AWS::SQS::Queue", f"{queue}/Queue")["VisibilityTimeout"]
    alarm = alarms(any_stage)[f"{queue.lower()}-late"]
    assert (alarm["MetricName"], alarm["Statistic"]) == ("ApproximateAgeOfOldestMessage", "Maximum")
    assert alarm["Threshold"] == 3 * visibility


def test_the_relay_is_late_when_one_bad_record_alone_can_not_explain_it_and_before_events_are_given_up(
    any_stage: Synthesised,
) -> None:
    function = any_stage.one("AWS::Lambda::Function", "Relaying/RelayFunction")
    mapping = any_stage.one("AWS::Lambda::EventSourceMapping", "Relaying/Mapping")
    alarm = alarms(any_stage)["relay-late"]
    halvings = (mapping["BatchSize"] - 1).bit_length()
    assert alarm["Threshold"] == (halvings + mapping["MaximumRetryAttempts"]) * function["Timeout"] * 1000
    if any_stage.stage != "local":  # there a stream's records may not be younger than a minute
        assert alarm["Threshold"] < mapping["MaximumRecordAgeInSeconds"] * 1000


def computed(alarm: Properties, **values: float | None) -> float:
    """An alarm's formula with these values; None stands for no data."""
    (formula,) = [metric["Expression"] for metric in alarm["Metrics"] if "Expression" in metric]
    known: dict[str, Any] = {
        "IF": lambda condition, then, otherwise: then if condition else otherwise,
        "FILL": lambda value, filling: filling if value is None else value,
    }
    result: float = eval(formula.replace(" AND ", " and "), known | values)  # noqa: S307 - our own text
    return result


@pytest.mark.parametrize("queue", ["orders", "payments", "emails"])
def test_a_queue_stalls_when_messages_wait_and_none_is_done(prod: Synthesised, queue: str) -> None:
    alarm = alarms(prod)[f"{queue}-stalled"]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)

    def rings(visible: int | None, hidden: int | None, first: int | None, replayed: int | None) -> bool:
        return computed(alarm, visible=visible, hidden=hidden, first=first, replayed=replayed) == 1

    assert rings(1, 0, None, None)
    assert rings(1, None, None, None)  # the mapping is off
    assert rings(None, 3, None, None)  # all of them back off
    assert not rings(9, 9, 1, None)
    assert not rings(9, 9, None, 1)
    assert not rings(0, 0, None, None)
    assert not rings(None, None, None, None)


@pytest.mark.parametrize(("queue", "function"), [("Orders", "Order"), ("Payments", "Payment"), ("Emails", "Email")])
def test_nobody_is_woken_for_a_message_that_waits_as_long_as_it_may(
    prod: Synthesised, queue: str, function: str
) -> None:
    alarm = alarms(prod)[f"{queue.lower()}-stalled"]
    visibility = prod.one("AWS::SQS::Queue", f"{queue}/Queue")["VisibilityTimeout"]
    backoff_cap = int(prod.environment(f"{queue}/{function}Function")["BACKOFF_CAP_S"])
    (period,) = {metric["MetricStat"]["Period"] for metric in alarm["Metrics"] if "MetricStat" in metric}
    assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"]
    assert (alarm["EvaluationPeriods"] - 1) * period >= max(visibility, backoff_cap)


def test_a_sweep_that_fails_or_leaves_orders_rings_and_one_that_is_well_does_not(prod: Synthesised) -> None:
    alarm = alarms(prod)["sweep-failing"]
    assert computed(alarm, errors=1, left=None) > alarm["Threshold"]
    assert computed(alarm, errors=0, left=2) > alarm["Threshold"]
    assert not computed(alarm, errors=0, left=None) > alarm["Threshold"]


def test_duplicates_and_retries_ring_nothing(prod: Synthesised) -> None:
    quiet = {"DuplicateReplayed", "Busy", "Takeover", "Retried", "NotStarted", "Resent"}
    for name, alarm in alarms(prod).items():
        if not name.endswith("-stalled"):
            assert not quiet & {metric for _, metric, _ in watched(alarm)}, name


def test_only_prod_has_alarms_on_metric_math_which_are_billed_for_each_metric(
    local: Synthesised, sandbox: Synthesised, prod: Synthesised
) -> None:
    formulas = {name for name, alarm in alarms(prod).items() if "Metrics" in alarm}
    assert set(alarms(local)) == set(alarms(sandbox)) == set(alarms(prod)) - formulas
    assert local.of_type("AWS::Logs::QueryDefinition") == {}


def test_the_dashboard_reads_from_top_to_bottom_as_an_order_goes(prod: Synthesised) -> None:
    texts = [(widget["y"], widget["properties"]["markdown"]) for widget in widgets(prod) if widget["type"] == "text"]
    assert texts == sorted(texts)
    assert [text.removeprefix("## ").partition(":")[0] for _, text in texts] == [
        *("api", *(consumer.queue for consumer in prod.consumers), "relay", "sweep")
    ]
    beside = [
        [metric[1] for metric in widget["properties"]["metrics"]]
        for widget in widgets(prod)
        if "duplicates" in widget["properties"].get("title", "")
    ]
    assert beside == (1 + len(prod.consumers)) * [["FirstRun", "DuplicateReplayed"]]


def test_the_dashboard_shows_the_state_of_every_alarm(prod: Synthesised) -> None:
    (status,) = [widget["properties"]["alarms"] for widget in widgets(prod) if widget["type"] == "alarm"]
    assert sorted(status) == sorted(f"<{path}.Arn>" for path in prod.of_type("AWS::CloudWatch::Alarm"))


def test_a_new_stage_is_watched_like_the_others_without_a_word(tmp_path: Path) -> None:
    app = new_app(tmp_path, "prod")
    settings = settings_from({"stage": "prod", **STAGES["prod"]}.get)
    data = StatefulStack(app, "new-stateful", settings)
    pipeline = PipelineStack(app, "new-pipeline", settings, data, Provider("https://provider.example", SECRET_ARN))
    pipeline.consumers.append(
        QueueConsumer(
            pipeline,
            *("survey", "surveys"),
            settings=settings,
            data=data,
            consumes=["order.reviewed"],
            calls=RequestBudget(aws=2),
            permissions=[],
        )
    )
    ObservabilityStack(app, "new-observability", settings, data, pipeline)

    found = read(app, tmp_path, "prod")
    assert {name for name in alarms(found) if name.startswith("survey")} == {
        *("surveys-parked", "surveys-late", "surveys-stalled"),
        *("surveys-lease-lost", "surveys-effect-without-state"),
        *("survey-failing", "survey-key-reused"),
    }
    assert any("## surveys: order.reviewed" in json.dumps(widget) for widget in widgets(found))


# Which lines a saved query is about.
FINDS: dict[str, Callable[[Line], bool]] = {
    "duplicates by correlation id": lambda line: "replayed" in (line["message"], line.get("outcome")),
    "the story of one order": lambda line: bool({"key", "order_id", "event_id"} & line.keys()),
    "takeovers": lambda line: line.get("uncertain") is True,
    "parked messages by reason": lambda line: line["message"] == "parked",
}
WORDS = {"and", "as", "asc", "by", "desc", "fields", "filter", "first", "last", "like", "limit", "or", "sort", "stats"}
FUNCTIONS_AND_NAMES = {"count", "min", "max", "replays", "parked"}


def queries(found: Synthesised) -> dict[str, Properties]:
    """The saved queries, by the last part of their names."""
    return {query["Name"].split("/")[-1]: query for query in found.of_type("AWS::Logs::QueryDefinition").values()}


def fields(query: str) -> set[str]:
    """The fields of our log lines that a query names."""
    bare = re.sub(r'"[^"]*"|/[^/]*/|@\w+', "", query)
    return set(re.findall(r"[a-z_]+", bare)) - WORDS - FUNCTIONS_AND_NAMES


@pytest.mark.parametrize("name", FINDS)
def test_every_field_that_a_saved_query_names_is_logged_where_it_looks(
    prod: Synthesised, every_path: EveryPath, name: str
) -> None:
    text = queries(prod)[name]["QueryString"]
    lines = [line for line in every_path.logged if FINDS[name](line)]
    assert lines
    assert fields(text) <= set().union(*lines)
    for by in re.findall(r" by (.*)$", text, re.M):
        for line in lines:
            assert fields(by) <= line.keys(), line


def test_the_words_that_saved_queries_look_for_are_what_is_logged(prod: Synthesised, every_path: EveryPath) -> None:
    for query in queries(prod).values():
        for field, word in re.findall(r'(\w+) = "(\w+)"', query["QueryString"]):
            assert word == ORDER or word in {line.get(field) for line in every_path.logged}


def test_the_story_of_an_order_has_a_line_of_every_function_on_its_way(every_path: EveryPath) -> None:
    order_id = next(line["order_id"] for line in every_path.logged if line.get("outcome") == "accepted")

    def about(line: Line) -> bool:
        return order_id in (line.get("key"), line.get("order_id"), str(line.get("event_id")).partition("/")[0])

    story = [(line["message"], line.get("operation")) for line in every_path.logged if about(line)]
    assert story[0] == ("request", None)
    for step in ("order.place", "payment.charge", "email.send"):
        assert ("done", step) in story
    assert story.count(("sent", None)) >= 3
    assert ("provider", None) in story or ("provider", "payment.charge") in story


def test_saved_queries_ask_all_functions_of_the_pipeline(prod: Synthesised) -> None:
    groups = {f"<{path}>" for path in prod.of_type("AWS::Logs::LogGroup")} - {"<Http/AccessLog>"}
    for query in queries(prod).values():
        assert set(query["LogGroupNames"]) == groups
