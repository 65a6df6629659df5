"""The pipeline of the README: the API, three queues with their consumers, the relay and the sweep."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.constructs.api import Api
from stacks.constructs.assets import payment_layer
from stacks.constructs.function import allow, client_environment
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.constructs.senders import Relay, Sweep
from stacks.deploy_inputs import remember
from stacks.settings import Settings, Stage
from stacks.stateful import StatefulStack
from stacks.times import RequestBudget


@dataclass(frozen=True)
class Provider:
    """The payment provider: its URL without a slash at the end, and the secret that holds the API key."""

    url: str
    secret_arn: str


class PipelineStack(Stack):
    def __init__(
        self, scope: Construct, id: str, settings: Settings, data: StatefulStack, provider: Provider, **kwargs: Any
    ) -> None:
        super().__init__(scope, id, **kwargs)
        records, rows = data.idempotency.table_arn, data.orders.table_arn
        consumer = partial(QueueConsumer, self, settings=settings, data=data)

        self.api = Api(self, settings=settings, data=data)
        self.consumers = consumers = [
            consumer(
                "order",
                "orders",
                consumes=["order.requested"],
                calls=RequestBudget(aws=1),
                permissions=[allow(records, "dynamodb:PutItem"), allow(rows, "dynamodb:UpdateItem")],
                claims=False,
            ),
            consumer(
                "payment",
                "payments",
                consumes=["order.placed"],
                # AWS: claim, read, save the intent, commit. Provider: create, confirm, cancel. A step that needs more
                # requests (to get an API key, to look up an intent) checks the time left before each of them.
                calls=RequestBudget(aws=4, provider=3),
                permissions=[
                    allow(records, "dynamodb:UpdateItem"),
                    allow(rows, "dynamodb:GetItem", "dynamodb:UpdateItem"),
                    allow(provider.secret_arn, "secretsmanager:GetSecretValue"),
                ],
                environment={
                    "PROVIDER_URL": provider.url,
                    "PROVIDER_SECRET_ARN": provider.secret_arn,
                    # An intent of the other mode is refused before its id is on the row.
                    "PROVIDER_LIVEMODE": "true" if settings.stage is Stage.PROD else "false",
                    **client_environment(settings.times.provider, "PROVIDER"),
                },
                layers=[] if settings.stage is Stage.LOCAL else [payment_layer(self)],
            ),
            consumer(
                "email",
                "emails",
                consumes=["order.paid", "order.declined"],
                calls=RequestBudget(aws=5),  # claim, read, put, send, commit
                permissions=[
                    allow(records, "dynamodb:UpdateItem"),
                    allow(rows, "dynamodb:GetItem", "dynamodb:UpdateItem"),
                    allow(data.receipts.arn_for_objects("receipts/*"), "s3:PutObject"),
                    _email_permission(settings, data),
                ],
                environment={"RECEIPTS_BUCKET": data.receipts.bucket_name, "SENDER": settings.sender},
            ),
        ]
        self.relay = relay = Relay(self, settings=settings, data=data, consumers=consumers)
        self.sweep = sweep = Sweep(self, settings=settings, data=data, consumers=consumers)

        first, *others = consumers
        first.allow_senders(settings.producers)
        for queue_consumer in others:
            queue_consumer.deny_other_senders([relay.role_arn, sweep.role_arn, *settings.operators])
        named = settings.operators if settings.stage is Stage.PROD else ()  # other stages allow the whole account
        # In prod the secret is required. In stage sandbox a deploy without it would return to the payment sandbox.
        secret_arn = settings.provider_secret_arn if settings.stage is Stage.SANDBOX else None
        remember(
            self,
            producers=",".join(settings.producers),
            operators=",".join(named),
            provider_secret_arn=secret_arn or "",
        )


def _email_permission(settings: Settings, data: StatefulStack) -> iam.PolicyStatement:
    if settings.stage is Stage.SANDBOX:
        # In the sandbox of SES the recipient is a verified identity too, and SES requires a permission to use it.
        statement = allow(_ses_arn("identity/*"), "ses:SendEmail")
        statement.add_condition("StringEquals", {"ses:FromAddress": settings.sender})
    else:
        statement = allow(data.sender.email_identity_arn, "ses:SendEmail")
    if settings.configuration_set:
        # SES also requires a permission to use the default set of an identity, although no request names the set.
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsimpleemailservicev2.html
        statement.add_resources(_ses_arn(f"configuration-set/{settings.configuration_set}"))
    return statement


def _ses_arn(resource: str) -> str:
    return f"arn:{Aws.PARTITION}:ses:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"
