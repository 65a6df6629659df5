"""One typed, checked settings object per stage: `local`, `sandbox`, `prod`. Knows nothing of the CDK.

What only a person can supply comes by CDK context: `cdk synth -c stage=prod -c sender=...`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from stacks.times import Client, SettingsError, Times, require

Context = Callable[[str], Any]

# Narrow: the sender becomes part of an ARN in a policy, where `*` and `?` stand for anything.
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
# As SES has it; it becomes part of an ARN too.
_CONFIGURATION_SET = re.compile(r"[A-Za-z0-9_-]{1,64}")

RUNBOOK = "docs/runbook.md"  # the file in the repository, until its copy has an address


class Stage(StrEnum):
    LOCAL = "local"
    SANDBOX = "sandbox"
    PROD = "prod"


@dataclass(frozen=True)
class Throughput:
    """How many records run at once: `batch_size` threads in each of `max_concurrency` workers."""

    batch_size: int = 10
    max_concurrency: int = 2
    window_s: int = 0  # how long to wait for a fuller batch

    def __post_init__(self) -> None:
        require(1 <= self.batch_size <= 10, f"batch size {self.batch_size}: SQS gives 1 to 10 without a window")
        require(2 <= self.max_concurrency <= 1000, f"maximum concurrency {self.max_concurrency}: SQS takes 2 to 1000")
        require(0 <= self.window_s <= 300, f"batching window {self.window_s} s: SQS takes 0 to 300 s")


@dataclass(frozen=True)
class Settings:
    stage: Stage
    times: Times
    sender: str
    log_retention: Literal["ONE_DAY", "ONE_MONTH", "ONE_YEAR"]
    api_rate: int  # requests per second that the API takes for long
    api_burst: int
    throughputs: Mapping[str, Throughput] = field(default_factory=dict)  # by function, where the usual one does not fit
    slow_s: float | None = None  # how long the payment sandbox takes when told to be slow
    provider_url: str | None = None  # a real provider; without it the payment sandbox is deployed
    provider_secret_arn: str | None = None
    producers: tuple[str, ...] = ()  # IAM ARNs outside the account that may put orders on the queue
    sender_identity: str | None = None  # the SES identity, address or domain, that is there already for the sender
    configuration_set: str | None = None  # SES's, through which mails under that identity go by default
    operators: tuple[str, ...] = ()  # IAM ARN patterns that may redrive into the queues behind the first
    alarm_email: str | None = None  # who is told of alarms, besides those who subscribe to the topic
    runbook_url: str = RUNBOOK  # where alarms send their reader
    endpoint: str | None = None  # where the emulated AWS listens

    def __post_init__(self) -> None:
        if self.stage is Stage.PROD:
            _check_real_provider(self)
        else:
            _check_payment_sandbox(self)
        require(self.api_rate <= self.api_burst, f"API rate {self.api_rate}/s is above its burst {self.api_burst}")
        for name, address in (("sender", self.sender), ("alarm_email", self.alarm_email)):
            require(address is None or bool(_ADDRESS.fullmatch(address)), f"{name} {address!r} is not a mail address")
        require(
            self.sender_identity in (None, self.sender, self.sender.rpartition("@")[2]),
            f"sender {self.sender!r} with sender_identity={self.sender_identity!r}: it is the sender or its domain",
        )
        require(
            self.configuration_set is None or bool(_CONFIGURATION_SET.fullmatch(self.configuration_set)),
            f"configuration_set {self.configuration_set!r}: SES takes 1 to 64 letters, digits, `_` and `-`",
        )
        for principal in self.producers + self.operators:
            require(principal.startswith("arn:"), f"principal {principal!r} is not an IAM ARN")
        for producer in self.producers:
            strict = not set("*?") & set(producer)
            require(strict, f"producer {producer!r} is a pattern: name each, or strangers get in")
        require(
            self.endpoint is None or self.stage is Stage.LOCAL,
            f"stage {self.stage} with endpoint {self.endpoint}: only stage local has one",
        )

    @property
    def keep_data(self) -> bool:
        return self.stage is Stage.PROD

    def throughput(self, function: str) -> Throughput:
        return self.throughputs.get(function, Throughput())


def _check_real_provider(s: Settings) -> None:
    require(s.slow_s is None, f"stage {s.stage} with slow_s={s.slow_s}: prod has no payment sandbox")
    require(s.provider_url is not None, f"stage {s.stage} with provider_url={s.provider_url}: prod needs a provider")
    arn = s.provider_secret_arn or ""
    require(
        arn.startswith("arn:") and ":secretsmanager:" in arn and arn[-7:-6] == "-",
        f"stage {s.stage} with provider_secret_arn={arn!r}: needs the complete ARN of a Secrets Manager secret, "
        "which ends in a hyphen and six characters",
    )


def _check_payment_sandbox(s: Settings) -> None:
    require(
        s.provider_url is None and s.provider_secret_arn is None,
        f"stage {s.stage} with provider_url={s.provider_url} and provider_secret_arn={s.provider_secret_arn}: "
        "only prod talks to a real provider",
    )
    require(
        s.slow_s is not None and s.slow_s > s.times.provider.read_s,
        f"the payment sandbox is slow for {s.slow_s} s, its client waits {s.times.provider.read_s} s: "
        "slow must be longer, or nobody ever sees a timeout",
    )


# Anybody in the account whose own IAM policy allows it. Strangers stay out: no policy allows them anything.
ACCOUNT = ("arn:*:iam::*:*",)

# A laptop waits seconds, so that a killed worker's message is soon back.
LAPTOP_TIMES = Times(
    aws=Client(connect_s=0.1, read_s=0.5),
    provider=Client(connect_s=0.1, read_s=0.9),
    spare_s=1.5,
    lease_skew_s=1,
    outage_s=60,
    backoff_base_s=1,
    backoff_cap_s=4,
    sweep_age_s=60,  # the outage: a killed worker's own message comes back sooner
    sweep_every_min=1,
)

AWS_TIMES = Times(
    aws=Client(connect_s=1, read_s=2),
    provider=Client(connect_s=2, read_s=10),
    spare_s=5,
    lease_skew_s=5,
    outage_s=2 * 3600,
    backoff_base_s=2,
    backoff_cap_s=900,
    sweep_age_s=2 * 3600 + 1800,  # the outage and half an hour: until then the queues still retry by themselves
    sweep_every_min=15,
)


def settings_from(context: Context) -> Settings:
    """The settings of the stage that the context names, `local` unless told.

    Raises SettingsError when the stage is unknown, a value contradicts another, or one is missing: how to give it.
    """
    name = context("stage") or "local"
    require(name in list(Stage), f"stage {name!r} is unknown: -c stage=local, sandbox or prod")
    return {"local": _local, "sandbox": _sandbox, "prod": _prod}[name](context)


def _local(context: Context) -> Settings:
    return Settings(
        stage=Stage.LOCAL,
        times=LAPTOP_TIMES,
        sender=context("sender") or "orders@example.com",
        log_retention="ONE_DAY",
        api_rate=500,
        api_burst=1000,
        # Each payment in flight keeps a worker of the payment sandbox busy too, and a laptop has few cores.
        throughputs={"payment": Throughput(batch_size=2)},
        slow_s=1.5,
        provider_secret_arn=context("provider_secret_arn"),
        operators=ACCOUNT,
        endpoint=context("endpoint") or "http://127.0.0.1:4566",
    )


def _sandbox(context: Context) -> Settings:
    return Settings(
        stage=Stage.SANDBOX,
        times=AWS_TIMES,
        sender=_supplied(context, "sender", "you@your-domain.example"),
        sender_identity=context("sender_identity"),
        configuration_set=context("configuration_set"),
        log_retention="ONE_MONTH",
        api_rate=50,
        api_burst=100,
        slow_s=12,
        provider_secret_arn=context("provider_secret_arn"),
        producers=_list(context, "producers"),
        operators=ACCOUNT,
        alarm_email=context("alarm_email"),
        runbook_url=context("runbook_url") or RUNBOOK,
        endpoint=context("endpoint"),
    )


def _prod(context: Context) -> Settings:
    return Settings(
        stage=Stage.PROD,
        times=AWS_TIMES,
        sender=_supplied(context, "sender", "orders@your-domain.example"),
        sender_identity=context("sender_identity"),
        configuration_set=context("configuration_set"),
        log_retention="ONE_YEAR",
        api_rate=100,
        api_burst=200,
        # To start with. What bounds payment and email are the provider's and SES's rates; raise them together.
        throughputs={
            "order": Throughput(max_concurrency=10),
            "payment": Throughput(batch_size=5, max_concurrency=5),
            # SES lets a new account send 14 mails a second; ten at once are refused more than they are sent.
            "email": Throughput(batch_size=1),
        },
        provider_url="https://api.stripe.com",
        provider_secret_arn=_supplied(
            context, "provider_secret_arn", "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-AbCdEf"
        ),
        producers=_list(context, "producers"),
        operators=_list(context, "operators"),
        alarm_email=context("alarm_email"),
        runbook_url=context("runbook_url") or RUNBOOK,
        endpoint=context("endpoint"),
    )


def _supplied(context: Context, name: str, example: str) -> str:
    value = context(name)
    if not value:
        raise SettingsError(f"stage {context('stage')} needs {name}: add `-c {name}={example}`")
    return str(value)


def _list(context: Context, name: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in (context(name) or "").split(",") if item.strip())
