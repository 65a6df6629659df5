"""One typed and validated settings object for each stage: `local`, `sandbox`, `prod`. Imports no CDK.

Values that only a person knows come from the CDK context: `cdk synth -c stage=prod -c sender=orders@example.com`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from stacks.times import Client, SettingsError, Times, require

Context = Callable[[str], Any]

# The sender becomes part of an ARN in a policy, where `*` and `?` are wildcards. So the pattern allows neither.
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
# The rule of SES. The name becomes part of an ARN too.
_CONFIGURATION_SET = re.compile(r"[A-Za-z0-9_-]{1,64}")

# A role or a user. An operator's name may be a pattern, as roles of IAM Identity Center end in a random part.
_PRINCIPAL = re.compile(r"arn:[\w*-]+:iam::(\d{12}|\*):(role|user)/(?!\*+$)[\w+=,.@/*?-]+", re.ASCII)

# Every principal of an account, if its own IAM policy allows the action. Other accounts have no permission.
ACCOUNT = ("arn:*:iam::*:*",)

STRIPE = "https://api.stripe.com"
RUNBOOK = "docs/runbook.md"  # the file in the repository, unless the context has a URL


class Stage(StrEnum):
    LOCAL = "local"
    SANDBOX = "sandbox"
    PROD = "prod"


@dataclass(frozen=True)
class Throughput:
    """The number of records that run at the same time: `batch_size` threads in each of `max_concurrency` workers."""

    batch_size: int = 10
    max_concurrency: int = 2
    window_s: int = 0  # the time that Lambda waits for a larger batch

    def __post_init__(self) -> None:
        require(1 <= self.batch_size <= 10, f"batch size {self.batch_size}: SQS accepts 1 to 10 without a window")
        require(2 <= self.max_concurrency <= 1000, f"maximum concurrency {self.max_concurrency}: SQS accepts 2 to 1000")
        require(0 <= self.window_s <= 300, f"batching window {self.window_s} s: SQS accepts 0 to 300 s")


@dataclass(frozen=True)
class Settings:
    stage: Stage
    times: Times
    sender: str
    log_retention: Literal["ONE_DAY", "ONE_MONTH", "ONE_YEAR"]
    api_rate: int  # requests a second, sustained
    api_burst: int
    throughputs: Mapping[str, Throughput] = field(default_factory=dict)  # by function, where the default does not fit
    slow_s: float | None = None  # duration of a slow answer of the payment sandbox
    provider_url: str | None = None  # a real provider. If None, the payment sandbox is deployed
    provider_secret_arn: str | None = None
    producers: tuple[str, ...] = ()  # IAM ARNs outside the account that may send orders to the queue
    sender_identity: str | None = None  # an SES identity (address or domain) of the sender that exists
    configuration_set: str | None = None  # the default SES configuration set of that identity
    operators: tuple[str, ...] = ()  # IAM ARN patterns that may redrive into all queues but the first
    alarm_email: str | None = None  # a subscriber of the alarm topic
    runbook_url: str = RUNBOOK  # the page that alarms link to
    endpoint: str | None = None  # the URL of the local AWS

    def __post_init__(self) -> None:
        if self.stage is Stage.PROD or self.provider_url is not None:
            _check_real_provider(self)
        else:
            _check_payment_sandbox(self)
        require(self.api_rate <= self.api_burst, f"API rate {self.api_rate}/s is above its burst {self.api_burst}")
        for name, address in (("sender", self.sender), ("alarm_email", self.alarm_email)):
            require(address is None or bool(_ADDRESS.fullmatch(address)), f"{name} {address!r} is not an email address")
        require(
            self.sender_identity in (None, *identities_of(self.sender)),
            f"sender {self.sender!r} with sender_identity={self.sender_identity!r}: use the sender or its domain",
        )
        require(
            self.configuration_set is None or bool(_CONFIGURATION_SET.fullmatch(self.configuration_set)),
            f"configuration_set {self.configuration_set!r}: SES accepts 1 to 64 letters, digits, `_` and `-`",
        )
        for principal in self.producers + (() if self.operators == ACCOUNT else self.operators):
            # Sessions have ARNs of STS, and IAM compares the ARN of their role.
            # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
            require(
                bool(_PRINCIPAL.fullmatch(principal)),
                f"principal {principal!r}: give the ARN of an IAM role or user, arn:aws:iam::ACCOUNT:role/NAME. A "
                "session (assumed-role) and a whole account (:root, *) are refused",
            )
        for producer in self.producers:
            literal = not set("*?") & set(producer)
            require(literal, f"producer {producer!r} is a pattern: give the ARN of each producer")
        require(
            self.runbook_url == RUNBOOK or self.runbook_url.startswith("https://"),
            f"runbook_url {self.runbook_url!r}: alarms link to it, so it must start with https://",
        )
        require(
            self.endpoint is None or self.stage is Stage.LOCAL,
            f"stage {self.stage} with endpoint {self.endpoint}: only stage local has an endpoint",
        )

    @property
    def keep_data(self) -> bool:
        return self.stage is Stage.PROD

    def throughput(self, function: str) -> Throughput:
        return self.throughputs.get(function, Throughput())


def identities_of(sender: str) -> tuple[str, ...]:
    """Return the SES identities that may send for an address: the address, its domain, and the parent domains.

    https://docs.aws.amazon.com/ses/latest/dg/creating-identities.html
    """
    labels = sender.rpartition("@")[2].split(".")
    return (sender, *(".".join(labels[n:]) for n in range(len(labels) - 1)))


def _check_real_provider(s: Settings) -> None:
    require(s.stage is not Stage.LOCAL, f"stage {s.stage} with provider_url={s.provider_url}: it has a payment sandbox")
    require(s.provider_url is not None, f"stage {s.stage} with provider_url={s.provider_url}: prod needs a provider")
    require(
        s.slow_s is None,
        f"stage {s.stage} with slow_s={s.slow_s} and provider_url={s.provider_url}: only the payment sandbox is slow",
    )
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
        "only stages sandbox and prod may have a real provider",
    )
    require(
        s.slow_s is not None and s.slow_s > s.times.provider.read_s,
        f"a slow answer of the payment sandbox takes {s.slow_s} s, its client waits {s.times.provider.read_s} s: "
        "the slow answer must take longer, otherwise no client times out",
    )


# Short times: the message of a killed worker comes back after seconds.
LAPTOP_TIMES = Times(
    aws=Client(connect_s=0.1, read_s=0.5),
    provider=Client(connect_s=0.1, read_s=0.9),
    spare_s=1.5,
    lease_skew_s=1,
    outage_s=60,
    backoff_base_s=1,
    backoff_cap_s=4,
    sweep_age_s=60,  # = outage_s: the message of a killed worker comes back earlier
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
    sweep_age_s=2 * 3600 + 1800,  # the outage and half an hour: until then the queues retry
    sweep_every_min=15,
)


def settings_from(context: Context) -> Settings:
    """Return the settings of the stage in the context; without a stage, of `local`.

    Raises SettingsError if the stage is unknown, a value is missing, or two values contradict each other.
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
        # Each payment also occupies a worker of the payment sandbox, and a laptop has few cores.
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
        # A secret with the key of a Stripe test account replaces the payment sandbox.
        slow_s=None if context("provider_secret_arn") else 12,
        provider_url=STRIPE if context("provider_secret_arn") else None,
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
        # Starting values. The rate limits of the provider and of SES limit payment and email.
        throughputs={
            "order": Throughput(max_concurrency=10),
            "payment": Throughput(batch_size=5, max_concurrency=5),
            # SES allows a new account 14 emails a second. With ten threads a worker, SES refuses most of them.
            "email": Throughput(batch_size=1),
        },
        provider_url=STRIPE,
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
