"""The stack of another variant: queues and functions, built by the constructs of this repository."""

from collections.abc import Sequence

from aws_cdk import App, Aws, Stack
from stacks.constructs.function import allow
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.settings import Settings
from stacks.stateful import StatefulStack

from lab.variants import Variant


class VariantStack(Stack):
    """Three queues and consumers with the times and limits of this repository. Each step sends to the next queue."""

    def __init__(
        self,
        scope: App,
        id: str,
        settings: Settings,
        variant: Variant,
        data: StatefulStack,
        provider_url: str,
        this_repo: Sequence[QueueConsumer],
    ) -> None:
        super().__init__(scope, id)
        self.consumers: list[QueueConsumer] = []
        records, rows = data.idempotency.table_arn, data.orders.table_arn
        environment = {
            "PROVIDER_URL": provider_url,
            "STRIPE_API_KEY": f"sk_test_{variant.name}",  # the payment sandbox accepts any key
            "RECEIPTS_BUCKET": data.receipts.bucket_name,
            "SENDER": settings.sender,
        }
        permissions = [
            allow(records, *(f"dynamodb:{verb}Item" for verb in ("Get", "Put", "Update", "Delete"))),
            allow(rows, "dynamodb:PutItem", "dynamodb:UpdateItem"),
            allow(data.receipts.arn_for_objects("receipts/*"), "s3:PutObject"),
            allow(f"arn:{Aws.PARTITION}:ses:{Aws.REGION}:{Aws.ACCOUNT_ID}:identity/{settings.sender}", "ses:SendEmail"),
        ]
        for like in reversed(this_repo):  # a sender is built after its receiver
            step = like.function.service
            consumer = QueueConsumer(
                self,
                step,
                like.name,
                settings=settings,
                data=data,
                consumes=like.consumes,
                calls=like.calls,
                permissions=permissions,
                environment=environment,
                module=f"{variant.package}.{step}",
                name_prefix=variant.name,
            )
            self.consumers.append(consumer)
            environment = {**environment, "NEXT_QUEUE_URL": consumer.queue.queue_url}
            permissions = [*permissions, allow(consumer.queue.queue_arn, "sqs:SendMessage")]
