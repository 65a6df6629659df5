"""The alarms. Each has a description, a link to the runbook, and a rule for missing data."""

import math
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from shared.idempotency import telemetry
from stacks.constructs.function import AppFunction
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.constructs.queues import queue_name
from stacks.pipeline import PipelineStack
from stacks.settings import Settings, Stage

# SQS leaves messages with more receives than this out of ApproximateAgeOfOldestMessage.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
RECEIVES_WITH_AGE = 3

MINUTE = Duration.minutes(1)
WINDOW_S = 300
WINDOW = Duration.seconds(WINDOW_S)

# Anchors of the sections of docs/runbook.md.
IN_A_DLQ = "a-message-is-in-a-dlq"
REUSED = "a-key-was-reused"
NO_STATE = "an-effect-without-its-state"
PROVIDER_DOWN = "the-provider-is-down"
BAD_DEPLOY = "a-bad-deploy"
ORDERS_STAND_STILL = "orders-stand-still"

Missing = cloudwatch.TreatMissingData


@dataclass(frozen=True)
class DatapointsToAlarm:
    """The alarm changes to ALARM if `times` of the last `periods` periods breach the threshold."""

    times: int = 1
    periods: int = 1


class Alarms(Construct):
    """All alarms of the pipeline. Each notifies `topic` when its state changes to ALARM or to OK."""

    def __init__(self, scope: Construct, *, settings: Settings, pipeline: PipelineStack, topic: sns.ITopic) -> None:
        super().__init__(scope, "Alarms")
        self.all: list[cloudwatch.Alarm] = []
        self._settings = settings
        self._action = actions.SnsAction(topic)
        self._api_alarms(pipeline)
        for consumer in pipeline.consumers:
            self._queue_alarms(consumer)
            self._step_alarms(consumer)
        self._relay_alarms(pipeline)
        self._sweep_alarms(pipeline)

    def _api_alarms(self, pipeline: PipelineStack) -> None:
        api = pipeline.api
        self._alarm(
            "api-5xx",
            api.http.metric_server_error(statistic="Sum", period=MINUTE),
            "The API answered 5xx in three of five minutes. A client can safely repeat its request with the same key.",
            BAD_DEPLOY,
            datapoints=DatapointsToAlarm(3, 5),
        )
        self._function_alarms(api.function)
        self._key_reused_alarm(
            api.function, "A client sent a different order with a key that is in use, and got status 422."
        )

    def _queue_alarms(self, consumer: QueueConsumer) -> None:
        name, timing = consumer.name, consumer.timing
        self._dlq_alarm(
            f"{name}-parked",
            consumer.dlq.metric_approximate_number_of_messages_visible(statistic="Maximum", period=MINUTE),
            f"A message of {name} is in the DLQ: a step refused it, or it failed on every receive.",
            IN_A_DLQ,
        )
        late_s = RECEIVES_WITH_AGE * timing.visibility_s
        self._alarm(
            f"{name}-late",
            consumer.queue.metric_approximate_age_of_oldest_message(statistic="Maximum", period=MINUTE),
            f"A message of {name} is older than {late_s} s. {RECEIVES_WITH_AGE} killed workers delay a message less "
            "than that: the queue has no consumer, or too few workers.",
            ORDERS_STAND_STILL,
            above=late_s,
        )
        # In-flight messages count as waiting: in an outage all messages back off, and are not visible.
        waiting = {
            "visible": consumer.queue.metric_approximate_number_of_messages_visible(statistic="Minimum", period=WINDOW),
            "hidden": consumer.queue.metric_approximate_number_of_messages_not_visible(
                statistic="Minimum", period=WINDOW
            ),
        }
        done = {
            "first": consumer.function.count_of(telemetry.FIRST_RUN),
            "replayed": consumer.function.count_of(telemetry.DUPLICATE_REPLAYED),
        }
        # Longer than the longest regular wait of one message between two attempts.
        longest_s = max(self._settings.times.backoff_cap_s, timing.visibility_s)
        windows = math.ceil(longest_s / WINDOW_S) + 1
        self._alarm(
            f"{name}-stalled",
            cloudwatch.MathExpression(
                label="messages wait, and none is done",
                # FILL, because SQS reports no data if no message is in flight.
                expression=(
                    "IF(FILL(visible, 0) + FILL(hidden, 0) > 0 AND FILL(first, 0) + FILL(replayed, 0) == 0, 1, 0)"
                ),
                using_metrics=waiting | done,
                period=WINDOW,
            ),
            f"Messages of {name} waited for {windows * WINDOW_S // 60} minutes, and none was processed: a service that "
            "the step calls is down, or a deploy broke the step. The messages are retried automatically.",
            PROVIDER_DOWN,
            datapoints=DatapointsToAlarm(windows, windows),
        )

    def _step_alarms(self, consumer: QueueConsumer) -> None:
        name, function = consumer.name, consumer.function
        self._function_alarms(function)
        self._key_reused_alarm(function, f"A message of {name} has the key of another request. The message was parked.")
        if not consumer.claims:
            return
        self._alarm(
            f"{name}-lease-lost",
            function.count_of(telemetry.LEASE_LOST),
            f"A worker of {name} stalled until its lease expired, and another worker took over. The stalled worker "
            "wrote nothing. If this happens often, the times are too short.",
            ORDERS_STAND_STILL,
        )
        self._alarm(
            f"{name}-effect-without-state",
            function.count_of(telemetry.EFFECT_WITHOUT_STATE),
            f"An effect of {name} happened, but the order row did not accept the new state: a person must decide.",
            NO_STATE,
        )

    def _relay_alarms(self, pipeline: PipelineStack) -> None:
        relay = pipeline.relay
        self._alarm(
            "relay-late",
            relay.function.metric("IteratorAge", statistic="Maximum", period=MINUTE),
            f"Events wait in the outbox for more than {relay.held_up_s} s. One record that cannot be sent delays them "
            "less than that.",
            ORDERS_STAND_STILL,
            above=relay.held_up_s * 1000,  # IteratorAge is in milliseconds
        )
        self._dlq_alarm(
            "relay-parked",
            relay.failures.metric_approximate_number_of_messages_visible(statistic="Maximum", period=MINUTE),
            "The relay gave up a record, or a record has events that cannot be sent. The sweep sends the others again.",
            ORDERS_STAND_STILL,
        )
        self._function_alarms(relay.function)

    def _sweep_alarms(self, pipeline: PipelineStack) -> None:
        function, times = pipeline.sweep.function, self._settings.times
        every = Duration.minutes(times.sweep_every_min)
        self._alarm(
            "sweep-sent",
            function.count_of(telemetry.SENT).with_(period=every),
            f"Orders did not move for {times.sweep_age_s} s, and the sweep sent their events again.",
            ORDERS_STAND_STILL,
        )
        self._alarm(
            "sweep-failing",
            cloudwatch.MathExpression(
                label="errors and orders left for the next run",
                expression="FILL(errors, 0) + FILL(left, 0)",
                using_metrics={
                    "errors": function.metric_errors(statistic="Sum", period=every),
                    "left": function.count_of(telemetry.LEFT).with_(period=every),
                },
                period=every,
            ),
            "The sweep failed, or left orders for its next run: an order that does not move may be missed.",
            ORDERS_STAND_STILL,
            datapoints=DatapointsToAlarm(2, 2),
        )
        self._alarm(
            "sweep-silent",
            function.metric_invocations(statistic="Sum", period=every),
            f"The sweep did not run for {2 * times.sweep_every_min} minutes: an order with a lost event is not found. "
            "This alarm also goes off once after a first deploy.",
            ORDERS_STAND_STILL,
            below=1,
            datapoints=DatapointsToAlarm(2, 2),
            missing=Missing.BREACHING,  # a function that never runs has no data
        )

    def _function_alarms(self, function: AppFunction) -> None:
        self._alarm(
            f"{function.service}-failing",
            cloudwatch.MathExpression(
                label="errors and throttles",
                expression="FILL(errors, 0) + FILL(throttles, 0)",
                using_metrics={
                    "errors": function.metric_errors(statistic="Sum", period=MINUTE),
                    "throttles": function.metric_throttles(statistic="Sum", period=MINUTE),
                },
                period=MINUTE,
            ),
            f"The {function.service} function failed, timed out or was throttled in three of five minutes. Its "
            "messages and requests are retried.",
            BAD_DEPLOY,
            datapoints=DatapointsToAlarm(3, 5),
        )

    def _key_reused_alarm(self, function: AppFunction, meaning: str) -> None:
        self._alarm(f"{function.service}-key-reused", function.count_of(telemetry.KEY_REUSED), meaning, REUSED)

    def _dlq_alarm(self, name: str, visible: cloudwatch.IMetric, meaning: str, section: str) -> None:
        # SQS stops reporting an inactive queue, even with messages in it. So missing data keeps the alarm state.
        self._alarm(name, visible, meaning, section, missing=Missing.IGNORE)

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        meaning: str,
        section: str,
        *,
        above: float = 0,
        below: float | None = None,
        datapoints: DatapointsToAlarm = DatapointsToAlarm(),
        missing: Missing = Missing.NOT_BREACHING,
    ) -> None:
        # CloudWatch bills an alarm on metric math for each metric: too much for a sandbox. The local AWS rejects them.
        if self._settings.stage is not Stage.PROD and isinstance(metric, cloudwatch.MathExpression):
            return
        operator = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.capitalize() for word in name.replace("_", "-").split("-")),
            alarm_name=queue_name(self._settings, name),
            alarm_description=f"{meaning} {self._settings.runbook_url}#{section}",
            metric=metric,
            threshold=above if below is None else below,
            comparison_operator=operator.GREATER_THAN_THRESHOLD if below is None else operator.LESS_THAN_THRESHOLD,
            evaluation_periods=datapoints.periods,
            datapoints_to_alarm=datapoints.times,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(self._action)
        alarm.add_ok_action(self._action)
        self.all.append(alarm)
