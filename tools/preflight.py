"""`make preflight`: what stands in the way of a deploy to the current account and region. Changes nothing.

`make deploy` runs the same checks first, and stops if one of them finds a reason.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from shared.orders import KeyUnusable, is_live_key, parse_api_key
from stacks.settings import Settings, Stage
from tools.ses import Identity

ROOT = Path(__file__).resolve().parents[1]
# https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html
QUALIFIER = "@aws-cdk/core:bootstrapQualifier"
DEFAULT_QUALIFIER = "hnb659fds"

# Regions in which CloudFormation does not know a resource type of the stacks. tests/stacks/test_cfn_lint.py compares
# the lists with the resource schemas of cfn-lint.
# https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html
WITHOUT_FUNCTION_URLS = (
    *("ap-east-2", "ap-south-2", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-west-1"),
    *("cn-northwest-1", "eu-central-2", "il-central-1", "me-central-1", "mx-central-1"),
    *("us-gov-east-1", "us-gov-west-1"),
)
# https://docs.aws.amazon.com/general/latest/gr/ses.html
WITHOUT_SES_IDENTITIES = (
    *("ap-east-1", "ap-east-2", "ap-southeast-4", "ap-southeast-6", "ap-southeast-7", "cn-north-1", "cn-northwest-1"),
    *("eu-south-2", "mx-central-1"),
)
# The DMARC policy of these providers tells receivers to reject or hide email that another service sends.
FREEMAIL = ("gmail.com", "googlemail.com", "yahoo.com", "outlook.com", "hotmail.com", "live.com", "icloud.com")


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"  # the deploy works, and something else does not work yet
    STOP = "stop"  # the deploy fails, or the deployment cannot do its work


@dataclass(frozen=True)
class Result:
    """What one check found."""

    level: Level
    subject: str
    text: str


@dataclass(frozen=True)
class Inputs:
    """What is deployed, and where. `account` is its id, `identity` the SES identity that exists for the sender.

    `alarm_topic`: the ARN of the topic of a deployed stage.
    """

    session: Any
    account: str
    region: str
    settings: Settings
    identity: Identity | None = None
    alarm_topic: str | None = None

    def client(self, service: str) -> Any:
        return self.session.client(service)


def region(inputs: Inputs) -> Iterator[Result]:
    """The region has all services of the stage."""
    here, stage = inputs.region, inputs.settings.stage
    if here in WITHOUT_SES_IDENTITIES:
        yield Result(Level.STOP, "region", f"{here} has no SES identities. Choose another region.")
    elif here in WITHOUT_FUNCTION_URLS and stage is Stage.SANDBOX:
        text = f"{here} has no Lambda function URLs, which the payment sandbox needs. Choose another region."
        yield Result(Level.STOP, "region", text)
    else:
        yield Result(Level.OK, "region", f"{here} has all services of stage {stage}")


def bootstrap(inputs: Inputs) -> Iterator[Result]:
    """The account and region were prepared for the CDK once."""
    qualifier = json.loads((ROOT / "cdk.json").read_text())["context"].get(QUALIFIER, DEFAULT_QUALIFIER)
    try:
        inputs.client("ssm").get_parameter(Name=f"/cdk-bootstrap/{qualifier}/version")
    except ClientError as error:
        if error.response["Error"]["Code"] != "ParameterNotFound":
            raise
        command = f".venv/bin/node node_modules/aws-cdk/bin/cdk bootstrap aws://{inputs.account}/{inputs.region}"
        yield Result(Level.STOP, "CDK bootstrap", f"missing. Once per account and region: {command}")
    else:
        yield Result(Level.OK, "CDK bootstrap", f"{inputs.account} {inputs.region} is prepared for the CDK")


def concurrency(inputs: Inputs) -> Iterator[Result]:
    """The account's limit of concurrent executions covers the stage. New accounts have 10.

    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """
    limit = inputs.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    needed = executions(inputs.settings)
    if limit >= needed:
        yield Result(Level.OK, "Lambda concurrency", f"the limit is {limit}, the stage uses up to {needed}")
        return
    text = (
        f"the limit is {limit}, the stage uses up to {needed}: under load, functions are throttled and orders are "
        "late. Request 1000: Service Quotas, AWS Lambda, Concurrent executions."
    )
    yield Result(Level.NOTE, "Lambda concurrency", text)


def executions(settings: Settings) -> int:
    """Return how many executions of all functions may run at once: workers of the queues, relay, sweep, API, sandbox.

    Each thread of a payment worker calls the payment sandbox, which is a function too.
    """
    workers = [settings.throughput(name) for name in ("order", "payment", "email")]
    payment = settings.throughput("payment")
    sandbox = payment.batch_size * payment.max_concurrency if settings.provider_url is None else 0
    return sum(each.max_concurrency for each in workers) + sandbox + 3


def email_account(inputs: Inputs) -> Iterator[Result]:
    """SES may send, and in prod to everybody."""
    account, here = inputs.client("sesv2").get_account(), inputs.region
    if not account.get("SendingEnabled", True):
        yield Result(Level.STOP, "SES account", f"sending is paused in {here}. See the SES console, Account dashboard.")
    elif account["ProductionAccessEnabled"]:
        yield Result(Level.OK, "SES account", f"SES has production access in {here}")
    elif inputs.settings.stage is Stage.PROD:
        text = (
            f"SES is in its sandbox in {here} and sends to verified addresses only, so customers would get no receipt. "
            "Request production access: SES console, Account dashboard."
        )
        yield Result(Level.STOP, "SES account", text)
    else:
        text = (
            f"SES is in its sandbox in {here}: one email a second, 200 a day, to verified addresses only. Verify each "
            "customer of your tests: "
            f"aws sesv2 create-email-identity --region {here} --email-identity buyer@example.com"
        )
        yield Result(Level.NOTE, "SES account", text)


def sender(inputs: Inputs) -> Iterator[Result]:
    """The sender's identity exists and is verified, and its email passes DMARC."""
    address, identity = inputs.settings.sender, inputs.identity
    if address.rpartition("@")[2].lower() in FREEMAIL:
        text = (
            f"{address} is an address of a free email provider: receivers reject or hide email that SES sends for it. "
            "Use a domain of your own."
        )
        yield Result(Level.NOTE, "sender", text)
    if identity is None:
        text = f"SES has no identity for {address}. The deploy creates one, and AWS sends a link that you must follow."
        yield Result(Level.NOTE, "sender", text)
    elif identity.verified:
        yield Result(Level.OK, "sender", f"SES has the verified identity {identity.name}")
    elif "@" in identity.name:
        text = f"follow the link in the email that AWS sent to {identity.name}. Until then SES refuses every receipt."
        yield Result(Level.NOTE, "sender", text)
    else:
        text = f"publish the DNS records that SES shows for {identity.name}. Until then SES refuses every receipt."
        yield Result(Level.NOTE, "sender", text)


def provider_secret(inputs: Inputs) -> Iterator[Result]:
    """The provider's secret exists in this region, and the payment function can read it. The key has the stage's mode.

    No text contains a part of the key.
    """
    arn = inputs.settings.provider_secret_arn
    if arn is None:
        yield Result(Level.OK, "provider secret", "the payment sandbox creates its own")
        return
    if (there := arn.split(":")[3]) != inputs.region:
        text = f"{arn} is in {there}, the stage is in {inputs.region}. Create the secret in this region."
        yield Result(Level.STOP, "provider secret", text)
        return
    secrets = inputs.client("secretsmanager")
    try:
        key = secrets.describe_secret(SecretId=arn).get("KmsKeyId")
        secret = secrets.get_secret_value(SecretId=arn)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("ResourceNotFoundException", "InvalidRequestException"):
            raise
        text = f"{arn} does not exist or is scheduled for deletion. Create the secret, or restore it."
        yield Result(Level.STOP, "provider secret", text)
        return
    if key and not key.endswith("alias/aws/secretsmanager"):
        text = (
            f"the secret is encrypted with the KMS key {key}. The key's policy must allow kms:Decrypt to the payment "
            f"function through Secrets Manager (condition kms:ViaService = secretsmanager.{inputs.region}"
            ".amazonaws.com)."
        )
        yield Result(Level.NOTE, "provider secret", text)
    mode = "live" if inputs.settings.stage is Stage.PROD else "test"
    try:
        live = is_live_key(parse_api_key(secret))
    except KeyUnusable as unusable:
        yield Result(Level.STOP, "provider secret", str(unusable))
        return
    if live is not (mode == "live"):
        text = f"the value is not a {mode} key of Stripe (sk_{mode}_… or rk_{mode}_…)"
        yield Result(Level.STOP, "provider secret", text)
    else:
        yield Result(Level.OK, "provider secret", f"the secret exists in this region and holds a {mode} key")


def principals(inputs: Inputs) -> Iterator[Result]:
    """Every producer in this account exists: SQS refuses a policy that names a role or user that does not exist."""
    iam = inputs.client("iam")
    for arn in inputs.settings.producers:
        _, _, _, _, account, name = arn.split(":", 5)
        kind, _, rest = name.partition("/")
        if account != inputs.account or kind not in ("role", "user"):
            text = (
                f"{arn} cannot be checked from here. If the principal does not exist, SQS refuses the queue's policy."
            )
            yield Result(Level.NOTE, "PRODUCERS", text)
            continue
        get = iam.get_role if kind == "role" else iam.get_user
        parameter = "RoleName" if kind == "role" else "UserName"
        try:
            get(**{parameter: rest.rpartition("/")[2]})
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchEntity":
                raise
            yield Result(Level.STOP, "PRODUCERS", f"{arn} does not exist, so SQS would refuse the policy of the queue.")
        else:
            yield Result(Level.OK, "PRODUCERS", f"{arn} exists")


def alarm_subscription(inputs: Inputs) -> Iterator[Result]:
    """The address that gets the alarms has confirmed its subscription."""
    address, topic = inputs.settings.alarm_email, inputs.alarm_topic
    if address is None:
        yield Result(Level.NOTE, "alarms", "ALARM_EMAIL is not set: nobody gets the alarms.")
        return
    if topic is None:
        text = f"SNS will send {address} an email with a link. Until somebody follows it, nobody gets the alarms."
        yield Result(Level.NOTE, "alarms", text)
        return
    pages = inputs.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    found = [each for page in pages for each in page["Subscriptions"] if each["Endpoint"] == address]
    if any(each["SubscriptionArn"].startswith("arn:") for each in found):
        yield Result(Level.OK, "alarms", f"{address} gets the alarms")
    else:
        yield Result(
            Level.NOTE,
            "alarms",
            f"{address} must follow the link in the email of SNS. Until then nobody gets the alarms.",
        )


Check = Callable[[Inputs], Iterator[Result]]

# What still has to be done by hand after a deploy.
BY_HAND: tuple[Check, ...] = (email_account, sender, alarm_subscription)
CHECKS: tuple[Check, ...] = (region, bootstrap, concurrency, provider_secret, principals, *BY_HAND)


def run(inputs: Inputs, checks: Sequence[Check]) -> list[Result]:
    """Run the checks. A check that AWS refuses yields a note with the error code: the deploy may still work."""
    return [result for check in checks for result in _of(check, inputs)]


def _of(check: Check, inputs: Inputs) -> Iterator[Result]:
    try:
        yield from check(inputs)
    except (ClientError, BotoCoreError) as error:
        code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
        operation = f" at {error.operation_name}" if isinstance(error, ClientError) else ""
        yield Result(Level.NOTE, check.__name__.replace("_", " "), f"cannot be checked: {code}{operation}")
