"""One dashboard, in the order of the pipeline: API, each queue with its function, relay, sweep, tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from shared.idempotency import telemetry
from stacks.constructs.api import Api
from stacks.constructs.function import AppFunction
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.constructs.queues import queue_name
from stacks.pipeline import PipelineStack
from stacks.settings import Settings
from stacks.stateful import StatefulStack

COLUMNS = 24  # of a CloudWatch dashboard
MINUTE = Duration.minutes(1)

DONE = (telemetry.FIRST_RUN, telemetry.DUPLICATE_REPLAYED)
TROUBLE = (telemetry.RETRIED, telemetry.NOT_STARTED, telemetry.PARKED, telemetry.KEY_REUSED)
CLAIM_METRICS = (telemetry.BUSY, telemetry.TAKEOVER, telemetry.LEASE_LOST, telemetry.EFFECT_WITHOUT_STATE)


@dataclass(frozen=True)
class Graph:
    """A graph. Metrics on the right axis have another unit than those on the left axis."""

    title: str
    left: Sequence[cloudwatch.IMetric]
    right: Sequence[cloudwatch.IMetric] = ()


class Dashboard(Construct):
    def __init__(
        self,
        scope: Construct,
        *,
        settings: Settings,
        data: StatefulStack,
        pipeline: PipelineStack,
        alarms: Sequence[cloudwatch.Alarm],
    ) -> None:
        super().__init__(scope, "Dashboard")
        api, relay, sweep = pipeline.api, pipeline.relay, pipeline.sweep
        board = cloudwatch.Dashboard(
            self, "Board", dashboard_name=queue_name(settings, "pipeline"), default_interval=Duration.hours(3)
        )
        board.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms, width=COLUMNS, height=4))
        _row(
            board,
            "api: accepts orders",
            Graph("answers", _answers(api)),
            Graph("first runs, and duplicates replayed", _counts(api.function, DONE)),
            Graph("refused, not started", _counts(api.function, (telemetry.KEY_REUSED, telemetry.NOT_STARTED))),
            Graph(
                "function; latency of the API in ms (right)",
                _function(api.function),
                [api.http.metric_latency(statistic="p99")],
            ),
        )
        for consumer in pipeline.consumers:
            function, trouble = consumer.function, TROUBLE + (CLAIM_METRICS if consumer.claims else ())
            _row(
                board,
                f"{consumer.name}: {', '.join(consumer.consumes)}",
                Graph("messages; age of the oldest message in s (right)", _messages(consumer), [_oldest(consumer)]),
                Graph("first runs, and duplicates replayed", _counts(function, DONE)),
                Graph("trouble", _counts(function, trouble)),
                Graph("function; ms (right)", _function(function), [function.metric_duration(statistic="p99")]),
            )
        events = (telemetry.SENT, telemetry.RESENT, telemetry.PARKED)
        _row(
            board,
            "relay: from the outbox to the queues",
            Graph("age of the oldest event in ms", [relay.function.metric("IteratorAge", statistic="Maximum")]),
            Graph("events", _counts(relay.function, events)),
            Graph(
                "records given up", [relay.failures.metric_approximate_number_of_messages_visible(statistic="Maximum")]
            ),
            Graph("function", _function(relay.function)),
        )
        _row(
            board,
            "sweep: orders that do not move",
            Graph(
                "orders sent again, orders left",
                _counts(sweep.function, (telemetry.SENT, telemetry.LEFT)),
            ),
            Graph("function", [sweep.function.metric_invocations(statistic="Sum"), *_function(sweep.function)]),
            Graph("order rows: conflicts, throttles", _table(data.orders)),
            Graph("records: conflicts, throttles", _table(data.idempotency)),
        )


def _row(board: cloudwatch.Dashboard, title: str, *graphs: Graph) -> None:
    board.add_widgets(cloudwatch.TextWidget(markdown=f"## {title}", width=COLUMNS, height=1))
    width = COLUMNS // len(graphs)
    board.add_widgets(
        *(
            cloudwatch.GraphWidget(
                title=graph.title, left=list(graph.left), right=list(graph.right), width=width, height=6
            )
            for graph in graphs
        )
    )


def _counts(function: AppFunction, names: Sequence[str]) -> Sequence[cloudwatch.IMetric]:
    return [function.count_of(name).with_(label=name, period=MINUTE) for name in names]


def _answers(api: Api) -> Sequence[cloudwatch.IMetric]:
    return [
        api.http.metric_count(statistic="Sum"),
        api.http.metric_client_error(statistic="Sum"),
        api.http.metric_server_error(statistic="Sum"),
    ]


def _messages(consumer: QueueConsumer) -> Sequence[cloudwatch.IMetric]:
    return [
        consumer.queue.metric_approximate_number_of_messages_visible(label="visible"),
        consumer.queue.metric_approximate_number_of_messages_not_visible(label="in flight or backing off"),
        consumer.dlq.metric_approximate_number_of_messages_visible(label="in the DLQ"),
    ]


def _oldest(consumer: QueueConsumer) -> cloudwatch.IMetric:
    return consumer.queue.metric_approximate_age_of_oldest_message(label="age")


def _function(function: AppFunction) -> Sequence[cloudwatch.IMetric]:
    return [
        function.metric_errors(statistic="Sum"),
        function.metric_throttles(statistic="Sum"),
        function.metric("ConcurrentExecutions", statistic="Maximum"),
    ]


def _table(table: dynamodb.Table) -> Sequence[cloudwatch.IMetric]:
    dimensions: Mapping[str, str] = {"TableName": table.table_name}
    return [
        cloudwatch.Metric(namespace="AWS/DynamoDB", metric_name=name, dimensions_map=dimensions, statistic="Sum")
        for name in ("TransactionConflict", "ReadThrottleEvents", "WriteThrottleEvents")
    ]
