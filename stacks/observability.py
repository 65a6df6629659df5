"""Alarms with their SNS topic, one dashboard, and saved log queries."""

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from stacks.alarms import Alarms
from stacks.constructs.queries import Queries
from stacks.dashboard import Dashboard
from stacks.deploy_inputs import REDACTED, remember
from stacks.pipeline import PipelineStack
from stacks.settings import RUNBOOK, Settings, Stage
from stacks.stateful import StatefulStack


class ObservabilityStack(Stack):
    def __init__(
        self,
        scope: Construct,
        id: str,
        settings: Settings,
        data: StatefulStack,
        pipeline: PipelineStack,
        **kwargs: Any,
    ) -> None:
        super().__init__(scope, id, **kwargs)
        topic = _topic(self, settings)
        alarms = Alarms(self, settings=settings, pipeline=pipeline, topic=topic)
        if settings.stage is not Stage.SANDBOX:  # it would be the largest part of the cost of an idle sandbox
            Dashboard(self, settings=settings, data=data, pipeline=pipeline, alarms=alarms.all)
        remember(
            self,
            alarm_email=REDACTED if settings.alarm_email else "",
            runbook_url="" if settings.runbook_url == RUNBOOK else settings.runbook_url,
        )
        if settings.stage is not Stage.LOCAL:  # the local AWS has no AWS::Logs::QueryDefinition
            functions = [
                pipeline.api.function,
                *(consumer.function for consumer in pipeline.consumers),
                pipeline.relay.function,
                pipeline.sweep.function,
            ]
            Queries(self, settings=settings, log_groups=[function.log_group for function in functions])


def _topic(scope: Construct, settings: Settings) -> sns.Topic:
    """Create the topic of all alarms. It is not encrypted: an alarm contains names of queues and no personal data.

    The AWS managed key of SNS does not admit CloudWatch, so encryption would need a customer managed key.
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services
    """
    stack = Stack.of(scope)
    topic = sns.Topic(scope, "AlarmTopic", enforce_ssl=True)
    # The policy that requires TLS replaces the default policy of a topic, which admits the alarms of the account.
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["sns:Publish"],
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            resources=[topic.topic_arn],
            conditions={
                "StringEquals": {"aws:SourceAccount": stack.account},
                "ArnLike": {
                    "aws:SourceArn": f"arn:{stack.partition}:cloudwatch:{stack.region}:{stack.account}:alarm:*",
                },
            },
        )
    )
    if settings.alarm_email:
        topic.add_subscription(subscriptions.EmailSubscription(settings.alarm_email))
    CfnOutput(scope, "AlarmTopicArn", value=topic.topic_arn)
    return topic
