"""Queues of this application: named, encrypted, TLS only."""

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from shared.idempotency.sqs import ATTRIBUTES_LIMIT_BYTES
from stacks.settings import Settings

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
SQS_MESSAGE_LIMIT_BYTES = 1024 * 1024


def message_limit_bytes(body_limit_bytes: int) -> int:
    """Return the MaximumMessageSize of a source queue: SQS counts the body and the message attributes."""
    return body_limit_bytes + ATTRIBUTES_LIMIT_BYTES


def queue_name(settings: Settings, name: str) -> str:
    return f"effectively-once-{settings.stage}-{name}"


def private_queue(
    scope: Construct,
    id: str,
    name: str,
    *,
    retention_s: int,
    max_message_bytes: int = SQS_MESSAGE_LIMIT_BYTES,
    **props: Any,
) -> sqs.Queue:
    return sqs.Queue(
        scope,
        id,
        queue_name=name,
        retention_period=Duration.seconds(retention_s),
        max_message_size_bytes=max_message_bytes,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        **props,
    )
