"""The two that send events on: the relay from the outbox, and the sweep from orders that got stuck."""

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
from stacks.times import RequestBudget

# A completed record that has events to send. Only leaf values can be matched, so the outbox is one string.
OUTBOX_FILTER = {"dynamodb": {"NewImage": {"status": {"S": ["COMPLETED"]}, "outbox": {"S": [{"exists": True}]}}}}
RELAY_BATCH = 50
# With halving, what one bad record costs the shard: about log2(batch) + retries runs of the relay.
RELAY_RETRIES = 10


class Relay(Construct):
    """Reads the idempotency table's stream and sends each completed record's events to their queues.

    `held_up_s`: seconds that one bad record can keep its shard waiting.
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
        # It sends in tens until its deadline and then raises, so it needs time for one request to each queue.
        timing = settings.times.timing(RequestBudget(aws=len(consumers) + 1))  # and one to park
        self.function = AppFunction(
            self,
            "relay",
            settings=settings,
            timeout_s=timing.timeout_s,
            environment={**_routes(self, routes), "DLQ_URL": self.failures.queue_url},
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
        # The plain resource: the CDK's own would let the function do more to the failure queue than send.
        lambda_.CfnEventSourceMapping(
            self,
            "Mapping",
            function_name=self.function.function_name,
            event_source_arn=data.outbox_stream_arn,
            starting_position="TRIM_HORIZON",
            batch_size=RELAY_BATCH,
            bisect_batch_on_function_error=True,
            # The relay names no single records, it raises; but one that did would be believed.
            function_response_types=["ReportBatchItemFailures"],
            maximum_retry_attempts=RELAY_RETRIES,
            maximum_record_age_in_seconds=settings.times.stream_age_s,
            destination_config={"onFailure": {"destination": self.failures.queue_arn}},
            filter_criteria={"filters": [{"pattern": json.dumps(OUTBOX_FILTER)}]},
        )


class Sweep(Construct):
    """Sends again, on a schedule, the event that an unfinished order waits for: to its first taker, who moves it on."""

    def __init__(
        self, scope: Construct, *, settings: Settings, data: StatefulStack, consumers: Sequence[QueueConsumer]
    ) -> None:
        super().__init__(scope, "Sweeping")
        swept = {kind.type for kind in get_args(NextEvent)}
        routes = {kind: takers[:1] for kind, takers in _consumers_by_type(consumers).items() if kind in swept}
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
            },
            permissions=[
                allow(f"{data.orders.table_arn}/index/{OPEN_ORDERS}", "dynamodb:Query"),
                allow(data.orders.table_arn, "dynamodb:GetItem", "dynamodb:UpdateItem"),
                *_send_permissions(routes),
            ],
        )
        self.role_arn = self.function.execution_role.role_arn
        events.Rule(
            self,
            "Schedule",
            schedule=events.Schedule.rate(Duration.minutes(settings.times.sweep_every_min)),
            targets=[targets.LambdaFunction(self.function)],
        )


def _consumers_by_type(consumers: Sequence[QueueConsumer]) -> Mapping[str, Sequence[QueueConsumer]]:
    """By event type: who takes it, in the pipeline's order."""
    takers: dict[str, list[QueueConsumer]] = {}
    for consumer in consumers:
        for event_type in consumer.consumes:
            takers.setdefault(event_type, []).append(consumer)
    return takers


def _routes(scope: Construct, routes: Mapping[str, Sequence[QueueConsumer]]) -> Mapping[str, str]:
    """Queue URLs by event type; a space stands between several."""
    urls = {kind: " ".join(taker.queue.queue_url for taker in takers) for kind, takers in routes.items()}
    return {"ROUTES": Stack.of(scope).to_json_string(urls)}


def _send_permissions(routes: Mapping[str, Sequence[QueueConsumer]]) -> list[iam.PolicyStatement]:
    takers = dict.fromkeys(taker for takers in routes.values() for taker in takers)
    return [allow(taker.queue.queue_arn, "sqs:SendMessage") for taker in takers]
