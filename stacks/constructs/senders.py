"""The two that send events on: the relay from the outbox, and the sweep from orders that got stuck."""

import json
import math
from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.constructs.function import AppFunction, allow, seconds
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.constructs.queues import private_queue, queue_name
from stacks.settings import Settings
from stacks.stateful import OPEN_ORDERS, StatefulStack
from stacks.times import Calls, require

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
        # It sends in tens until its deadline and then raises, so it needs time for one request to each queue.
        timing = settings.times.timing(Calls(aws=len(consumers) + 1))  # and one to park
        self.function = AppFunction(
            self,
            "relay",
            settings=settings,
            timeout_s=timing.timeout_s,
            environment={**_routes(self, consumers), "DLQ_URL": self.failures.queue_url},
            may=[
                allow(
                    data.outbox_stream_arn,
                    "dynamodb:DescribeStream",
                    "dynamodb:GetRecords",
                    "dynamodb:GetShardIterator",
                    "dynamodb:ListStreams",
                ),
                *_may_send(consumers),
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
    """Sends again, on a schedule, the event that an unfinished order waits for."""

    def __init__(
        self, scope: Construct, *, settings: Settings, data: StatefulStack, consumers: Sequence[QueueConsumer]
    ) -> None:
        super().__init__(scope, "Sweeping")
        self.function = AppFunction(
            self,
            "sweep",
            settings=settings,
            timeout_s=settings.times.sweep_timeout_s,
            environment={
                **_routes(self, consumers),
                "ORDERS_TABLE": data.orders.table_name,
                "OPEN_ORDERS_INDEX": OPEN_ORDERS,
                "SWEEP_AGE_S": seconds(settings.times.sweep_age_s),
            },
            may=[
                allow(f"{data.orders.table_arn}/index/{OPEN_ORDERS}", "dynamodb:Query"),
                allow(data.orders.table_arn, "dynamodb:GetItem", "dynamodb:UpdateItem"),
                *_may_send(consumers),
            ],
        )
        self.role_arn = self.function.execution_role.role_arn
        events.Rule(
            self,
            "Schedule",
            schedule=events.Schedule.rate(Duration.minutes(settings.times.sweep_every_min)),
            targets=[targets.LambdaFunction(self.function)],
        )


def _routes(scope: Construct, consumers: Sequence[QueueConsumer]) -> Mapping[str, str]:
    takers: dict[str, QueueConsumer] = {}
    for consumer in consumers:
        for event_type in consumer.takes:
            first = takers.setdefault(event_type, consumer)
            require(
                first is consumer,
                f"{event_type} is taken by {first.node.id} and by {consumer.node.id}: an event goes to one queue, "
                "so let the step before emit one for each",
            )
    urls = {event_type: consumer.queue.queue_url for event_type, consumer in takers.items()}
    return {"ROUTES": Stack.of(scope).to_json_string(urls)}


def _may_send(consumers: Sequence[QueueConsumer]) -> list[iam.PolicyStatement]:
    return [allow(consumer.queue.queue_arn, "sqs:SendMessage") for consumer in consumers]
