"""One queue consumer of the pipeline: a queue, its DLQ and the function that consumes the queue.

Times, limits, permissions and outputs are derived from the arguments.
"""

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
from stacks.times import AFTER_COMMIT, RequestBudget


class QueueConsumer(Construct):
    """A queue, its DLQ, and the function `functions/<function>` that consumes the queue.

    `queue`: the queue's name, such as `payments`. Several resources and outputs are named after it.
    `consumes`: the event types that the relay sends to this queue.
    `calls`: the requests that one step may have to wait for.
    `permissions`: what the function may do, except for reading its queue and sending to its DLQ.
    `claims`: whether the step has an effect outside its DynamoDB transaction, so that it claims its record.
    `no_guard`: why the step has no guard (`guard=no_guard`). `cdk synth` prints it as a warning.
    `module`: the module of the handler, if it is not `functions.<function>.handler`.
    `name_prefix`: part of the queues' names, if a stage has two queues of the same name.
    """

    def __init__(
        self,
        scope: Construct,
        function: str,
        queue: str,
        *,
        settings: Settings,
        data: StatefulStack,
        consumes: Sequence[str],
        calls: RequestBudget,
        permissions: Sequence[iam.PolicyStatement],
        claims: bool = True,
        no_guard: str | None = None,
        environment: Mapping[str, str] | None = None,
        layers: Sequence[lambda_.ILayerVersion] = (),
        module: str | None = None,
        name_prefix: str | None = None,
    ) -> None:
        super().__init__(scope, queue.capitalize())
        self.name, self.consumes, self.calls, self.claims = queue, consumes, calls, claims
        throughput, times = settings.throughput(function), settings.times
        self.timing = timing = times.timing(calls, after=AFTER_COMMIT, window_s=throughput.window_s)
        name = queue_name(settings, f"{name_prefix}-{queue}" if name_prefix else queue)

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
                "CONCURRENCY": str(throughput.batch_size),
                **(environment or {}),
            },
            permissions=[
                allow(
                    self.queue.queue_arn,
                    "sqs:ReceiveMessage",
                    "sqs:DeleteMessage",
                    "sqs:GetQueueAttributes",
                    "sqs:ChangeMessageVisibility",
                ),
                allow(self.dlq.queue_arn, "sqs:SendMessage"),
                *permissions,
            ],
        )
        self.function.describe_step(calls, no_guard)
        # No filter: Lambda deletes a message that does not match, and the order in the message would be lost.
        lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=self.function,
            event_source_arn=self.queue.queue_arn,
            batch_size=throughput.batch_size,
            max_batching_window=Duration.seconds(throughput.window_s),
            max_concurrency=throughput.max_concurrency,
            report_batch_item_failures=True,
        )
        title = queue.capitalize()
        CfnOutput(Stack.of(self), f"{title}QueueUrl", value=self.queue.queue_url)
        CfnOutput(Stack.of(self), f"{title}DlqUrl", value=self.dlq.queue_url)

    def allow_senders(self, producers: Sequence[str]) -> None:
        """Allow these IAM ARNs to send to the queue. A principal of the same account needs its IAM policy only."""
        if producers:
            self.queue.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    principals=[iam.ArnPrincipal(arn) for arn in producers],
                    resources=[self.queue.queue_arn],
                )
            )

    def deny_other_senders(self, senders: Sequence[str]) -> None:
        """Deny all other principals to send to the queue, even if their own IAM policy allows sending."""
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
    """Refer to the source queue by name: the queue depends on its DLQ, so the DLQ cannot depend on the queue."""
    arn = Stack.of(scope).format_arn(service="sqs", resource=name, arn_format=ArnFormat.NO_RESOURCE_NAME)
    return sqs.Queue.from_queue_arn(scope, "Source", arn)
