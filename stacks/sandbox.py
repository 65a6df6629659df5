"""The payment provider of every stage except prod: the payment sandbox, its ledger and its API key."""

from typing import Any

from aws_cdk import CfnOutput, Fn, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stacks.constructs.function import AppFunction, allow, seconds
from stacks.settings import Settings, Stage
from stacks.times import RequestBudget, SettingsError


class SandboxStack(Stack):
    """The payment sandbox. Raises SettingsError in prod, where only a real provider may take payments."""

    def __init__(self, scope: Construct, id: str, settings: Settings, **kwargs: Any) -> None:
        if settings.stage is Stage.PROD or settings.slow_s is None:
            raise SettingsError(
                f"stage {settings.stage} with the payment sandbox: only stages local and sandbox have one"
            )
        super().__init__(scope, id, **kwargs)
        ledger = dynamodb.Table(
            self,
            "Ledger",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            time_to_live_attribute="expiration",  # of idempotency keys: the provider deletes them after a day
            removal_policy=RemovalPolicy.DESTROY,
        )
        key = secretsmanager.Secret(
            self,
            "ApiKey",
            description="API key of the payment sandbox",
            generate_secret_string=secretsmanager.SecretStringGenerator(exclude_punctuation=True, password_length=40),
            removal_policy=RemovalPolicy.DESTROY,
        )
        # On a laptop the sandbox accepts any API key. In an account its URL is public, so it checks the key.
        guarded = settings.stage is Stage.SANDBOX
        timing = settings.times.timing(RequestBudget(aws=5), extra_s=settings.slow_s)
        function = AppFunction(
            self,
            "payment_sandbox",
            settings=settings,
            timeout_s=timing.timeout_s,
            environment={
                "LEDGER_TABLE": ledger.table_name,
                "SLOW_S": seconds(settings.slow_s),
                **({"API_KEY_SECRET_ARN": key.secret_arn} if guarded else {}),
            },
            permissions=[
                allow(
                    ledger.table_arn,
                    "dynamodb:GetItem",
                    "dynamodb:PutItem",
                    "dynamodb:UpdateItem",
                    "dynamodb:DeleteItem",
                    "dynamodb:Query",
                ),
                *([allow(key.secret_arn, "secretsmanager:GetSecretValue")] if guarded else []),
            ],
        )
        self.secret_arn = key.secret_arn
        url = function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.NONE)
        output = CfnOutput(self, "PaymentSandboxUrl", value=_url(url, settings.endpoint))
        # Other stacks get the finished output: CloudFormation cannot split a value of another stack.
        self.url = Fn.get_stack_output(self.stack_name, output.logical_id)
        CfnOutput(self, "PaymentSandboxSecretArn", value=self.secret_arn)
        CfnOutput(self, "LedgerTableName", value=ledger.table_name)


def _url(url: lambda_.FunctionUrl, endpoint: str | None) -> str:
    """Return the URL of the function, without a slash at the end: the SDK of the provider adds one."""
    host = Fn.select(2, Fn.split("/", url.url))
    return f"{endpoint}/_aws/lambda-url/{Fn.select(0, Fn.split('.', host))}" if endpoint else f"https://{host}"
