"""The two functions that send events: the relay from the outbox, and the sweep for orders that do not move."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import get_args

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from shared.orders.row import NextEvent
from stacks.constructs.function import AppFunction, allow, seconds
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.constructs.queues import private_queue, queue_name
from stacks.settings import Settings
from stacks.stateful import OPEN_ORDERS, StatefulStack
from stacks.times import ANSWER_S, RequestBudget

# A completed record with events to send. A filter matches leaf values only, therefore the outbox is one string.
OUTBOX_FILTER = {"dynamodb": {"NewImage": {"status": {"S": ["COMPLETED"]}, "outbox": {"S": [{"exists": True}]}}}}
RELAY_BATCH = 50
# With bisection, one bad record costs its shard about log2(batch) + retries runs of the relay.
RELAY_RETRIES = 10


class Relay(Construct):
    """Read the stream of the idempotency table and send the events of each completed record to their queues.

    `held_up_s`: the longest time in seconds for which one bad record delays its shard.
    """

    def __init__(
        self, scope: Construct, *, settings: Settings, data: StatefulStack, consumers: Sequence[QueueConsumer]
    ) -> None:
        super().__init__(scope, "Relaying")
        self.failures = private_queue(
            self,
            "Failures",
            queue_name(settings, "relay-failures"),
            retention_s=settings.times.dlq_retention_s,
        )
        routes = _consumers_by_type(consumers)
        # The relay needs time for one batch of ten to each queue and for one message to its failure queue. If its
        # deadline ends before it has sent all events, it raises, and Lambda runs it again.
        timing = settings.times.timing(RequestBudget(aws=len(consumers) + 1))
        self.function = AppFunction(
            self,
            "relay",
            settings=settings,
            timeout_s=timing.timeout_s,
            environment={
                **_routes(self, routes),
                "DLQ_URL": self.failures.queue_url,
                "RESERVE_S": seconds(timing.reserve_s),
            },
            permissions=[
                allow(
                    data.outbox_stream_arn,
                    "dynamodb:DescribeStream",
                    "dynamodb:GetRecords",
                    "dynamodb:GetShardIterator",
                    "dynamodb:ListStreams",
                ),
                *_send_permissions(routes),
                allow(self.failures.queue_arn, "sqs:SendMessage"),
            ],
        )
        self.role_arn = self.function.execution_role.role_arn
        self.held_up_s = (math.ceil(math.log2(RELAY_BATCH)) + RELAY_RETRIES) * timing.timeout_s
        # The L1 resource: the L2 mapping would allow the function more on the failure queue than sending.
        lambda_.CfnEventSourceMapping(
            self,
            "Mapping",
            function_name=self.function.function_name,
            event_source_arn=data.outbox_stream_arn,
            starting_position="TRIM_HORIZON",
            batch_size=RELAY_BATCH,
            bisect_batch_on_function_error=True,
            # This relay raises instead of reporting single records. The setting is for a relay that reports them.
            function_response_types=["ReportBatchItemFailures"],
            maximum_retry_attempts=RELAY_RETRIES,
            maximum_record_age_in_seconds=settings.times.stream_age_s,
            destination_config={"onFailure": {"destination": self.failures.queue_arn}},
            filter_criteria={"filters": [{"pattern": json.dumps(OUTBOX_FILTER)}]},
        )


class Sweep(Construct):
    """Send the pending event of an unfinished order again, on a schedule, to each queue that consumes it."""

    def __init__(
        self, scope: Construct, *, settings: Settings, data: StatefulStack, consumers: Sequence[QueueConsumer]
    ) -> None:
        super().__init__(scope, "Sweeping")
        pending = {kind.type for kind in get_args(NextEvent)}
        routes = {kind: found for kind, found in _consumers_by_type(consumers).items() if kind in pending}
        self.function = AppFunction(
            self,
            "sweep",
            settings=settings,
            timeout_s=settings.times.sweep_timeout_s,
            environment={
                **_routes(self, routes),
                "ORDERS_TABLE": data.orders.table_name,
                "OPEN_ORDERS_INDEX": OPEN_ORDERS,
                "SWEEP_AGE_S": seconds(settings.times.sweep_age_s),
                "RESERVE_S": seconds(ANSWER_S),
            },
            permissions=[
                allow(f"{data.orders.table_arn}/index/{OPEN_ORDERS}", "dynamodb:Query"),
                allow(data.orders.table_arn, "dynamodb:GetItem", "dynamodb:UpdateItem"),
                *_send_permissions(routes),
            ],
        )
        # Lambda would run a failed sweep twice more, beside the next schedule.
        self.function.configure_async_invoke(retry_attempts=0)
        self.role_arn = self.function.execution_role.role_arn
        events.Rule(
            self,
            "Schedule",
            schedule=events.Schedule.rate(Duration.minutes(settings.times.sweep_every_min)),
            targets=[targets.LambdaFunction(self.function)],
        )


def _consumers_by_type(consumers: Sequence[QueueConsumer]) -> Mapping[str, Sequence[QueueConsumer]]:
    """Return the consumers of each event type, in the order of the pipeline."""
    found: dict[str, list[QueueConsumer]] = {}
    for consumer in consumers:
        for event_type in consumer.consumes:
            found.setdefault(event_type, []).append(consumer)
    return found


def _routes(scope: Construct, routes: Mapping[str, Sequence[QueueConsumer]]) -> Mapping[str, str]:
    """Return ROUTES: the queue URLs of each event type, separated by spaces."""
    urls = {kind: " ".join(consumer.queue.queue_url for consumer in consumers) for kind, consumers in routes.items()}
    return {"ROUTES": Stack.of(scope).to_json_string(urls)}


def _send_permissions(routes: Mapping[str, Sequence[QueueConsumer]]) -> list[iam.PolicyStatement]:
    receivers = dict.fromkeys(consumer for consumers in routes.values() for consumer in consumers)
    return [allow(receiver.queue.queue_arn, "sqs:SendMessage") for receiver in receivers]
