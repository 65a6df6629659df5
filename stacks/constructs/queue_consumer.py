"""One stage of the pipeline: a queue, its DLQ, and the function that empties it. All but the arguments is derived."""

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, CfnOutput, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from shared.idempotency.events import BODY_LIMIT_BYTES
from stacks.constructs.function import AppFunction, allow, seconds, step_environment
from stacks.constructs.queues import message_limit_bytes, private_queue, queue_name
from stacks.settings import Settings
from stacks.stateful import StatefulStack
from stacks.times import Calls


class QueueConsumer(Construct):
    """`functions/<function>` behind the queue `<queue>`, to which events of the types `takes` are sent.

    `calls` are the requests that one step may have to wait for, `may` what it is allowed besides its own queues.
    `claims`: the step has an outside effect, so it can be taken over, and what is counted of that is watched.
    `module`: where its handler is, if not there; `lane`: goes into the names of queues that are in a stage twice.
    """

    def __init__(
        self,
        scope: Construct,
        function: str,
        queue: str,
        *,
        settings: Settings,
        data: StatefulStack,
        takes: Sequence[str],
        calls: Calls,
        may: Sequence[iam.PolicyStatement],
        claims: bool = True,
        environment: Mapping[str, str] | None = None,
        layers: Sequence[lambda_.ILayerVersion] = (),
        module: str | None = None,
        lane: str | None = None,
    ) -> None:
        super().__init__(scope, queue.capitalize())
        self.name, self.takes, self.calls, self.claims = queue, takes, calls, claims
        flow, times = settings.flow(function), settings.times
        self.timing = timing = times.timing(calls, window_s=flow.window_s)
        name = queue_name(settings, f"{lane}-{queue}" if lane else queue)

        self.dlq = private_queue(
            self,
            "Dlq",
            f"{name}-dlq",
            retention_s=times.dlq_retention_s,
            redrive_allow_policy=sqs.RedriveAllowPolicy(source_queues=[_by_name(self, name)]),
        )
        self.queue = private_queue(
            self,
            "Queue",
            name,
            retention_s=times.source_retention_s,
            max_message_bytes=message_limit_bytes(int((environment or {}).get("BODY_LIMIT_BYTES", BODY_LIMIT_BYTES))),
            visibility_timeout=Duration.seconds(timing.visibility_s),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dlq, max_receive_count=timing.max_receives),
        )
        self.function = AppFunction(
            self,
            function,
            settings=settings,
            timeout_s=timing.timeout_s,
            layers=layers,
            module=module,
            environment={
                **step_environment(
                    settings, timing, idempotency=data.idempotency.table_name, orders=data.orders.table_name
                ),
                "QUEUE_URL": self.queue.queue_url,
                "DLQ_URL": self.dlq.queue_url,
                "BACKOFF_BASE_S": seconds(times.backoff_base_s),
                "BACKOFF_CAP_S": seconds(times.backoff_cap_s),
                "CONCURRENCY": str(flow.batch_size),
                **(environment or {}),
            },
            may=[
                allow(
                    self.queue.queue_arn,
                    "sqs:ReceiveMessage",
                    "sqs:DeleteMessage",
                    "sqs:GetQueueAttributes",
                    "sqs:ChangeMessageVisibility",
                ),
                allow(self.dlq.queue_arn, "sqs:SendMessage"),
                *may,
            ],
        )
        self.function.note_calls(calls)
        # No filter: a message that a filter turns down is deleted, which no queue of orders and money may do.
        lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=self.function,
            event_source_arn=self.queue.queue_arn,
            batch_size=flow.batch_size,
            max_batching_window=Duration.seconds(flow.window_s),
            max_concurrency=flow.max_concurrency,
            report_batch_item_failures=True,
        )
        title = queue.capitalize()
        CfnOutput(Stack.of(self), f"{title}QueueUrl", value=self.queue.queue_url)
        CfnOutput(Stack.of(self), f"{title}DlqUrl", value=self.dlq.queue_url)

    def admit(self, producers: Sequence[str]) -> None:
        """Let these IAM ARNs send to the queue; the account's own principals need no more than their IAM policy."""
        if producers:
            self.queue.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    principals=[iam.ArnPrincipal(arn) for arn in producers],
                    resources=[self.queue.queue_arn],
                )
            )

    def refuse_all_but(self, senders: Sequence[str]) -> None:
        """Take messages from these IAM ARNs only, whatever an administrator's IAM policy allows others."""
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                actions=["sqs:SendMessage"],
                principals=[iam.AnyPrincipal()],
                resources=[self.queue.queue_arn],
                conditions={"ArnNotLike": {"aws:PrincipalArn": senders}},
            )
        )


def _by_name(scope: Construct, name: str) -> sqs.IQueue:
    """The source queue by its name, since it and its DLQ can not both wait for the other to be made."""
    arn = Stack.of(scope).format_arn(service="sqs", resource=name, arn_format=ArnFormat.NO_RESOURCE_NAME)
    return sqs.Queue.from_queue_arn(scope, "Source", arn)
