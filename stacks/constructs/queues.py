"""Queues as this application wants them: encrypted, TLS only, named."""

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.settings import Settings


def queue_name(settings: Settings, name: str) -> str:
    return f"effectively-once-{settings.stage}-{name}"


def private_queue(scope: Construct, id: str, name: str, *, retention_s: int, **props: Any) -> sqs.Queue:
    return sqs.Queue(
        scope,
        id,
        queue_name=name,
        retention_period=Duration.seconds(retention_s),
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        **props,
    )
