"""How long everything waits, and what follows from it: each derived number is computed here, once.

A contradiction is refused with both values, because CloudFormation accepts most of them in silence.
"""

import math
from dataclasses import dataclass

from shared.idempotency.backoff import receives_to_ride_out

DAY_S = 24 * 3600
LAMBDA_LIMIT_S = 900
SQS_RETENTION_LIMIT_S = 14 * DAY_S
SQS_RECEIVE_LIMIT = 1000
STREAM_AGE_LEAST_S = 60


class SettingsError(ValueError):
    """Settings that can not keep the promise, or something that only a person can supply is missing."""


def require(holds: bool, otherwise: str) -> None:
    """Raises SettingsError with the text unless the condition holds."""
    if not holds:
        raise SettingsError(otherwise)


@dataclass(frozen=True)
class Client:
    """Timeouts of one request, in seconds."""

    connect_s: float
    read_s: float

    @property
    def request_s(self) -> float:
        return self.connect_s + self.read_s


@dataclass(frozen=True)
class Calls:
    """Requests that one step may have to wait for, one after the other."""

    aws: int = 0
    provider: int = 0


@dataclass(frozen=True)
class Timing:
    """What follows for a function from the requests that one run of it makes."""

    step_needs_s: float
    timeout_s: int
    visibility_s: int


@dataclass(frozen=True)
class Times:
    """What one stage waits for; the rest follows."""

    aws: Client
    provider: Client
    spare_s: float  # above what a step needs: start-up, and room for requests that are sent again
    lease_skew_s: int  # how far two clocks may differ before a lease is thought over too early
    outage_s: int  # how long everything around may be down without a message being parked
    backoff_base_s: int
    backoff_cap_s: int
    sweep_age_s: int  # how old an unfinished order is before its event is sent again
    sweep_every_min: int
    source_retention_s: int = 7 * DAY_S
    dlq_retention_s: int = 14 * DAY_S

    def __post_init__(self) -> None:
        require(self.spare_s >= 1, f"spare time of {self.spare_s} s: a function needs at least 1 s to start up")
        require(self.lease_skew_s >= 1, f"lease skew of {self.lease_skew_s} s: clocks differ, so at least 1 s")
        require(
            1 <= self.backoff_base_s <= self.backoff_cap_s,
            f"back-off base {self.backoff_base_s} s and cap {self.backoff_cap_s} s: need 1 <= base <= cap",
        )
        require(
            self.max_receives <= SQS_RECEIVE_LIMIT,
            f"an outage of {self.outage_s} s with waits up to {self.backoff_cap_s} s takes {self.max_receives} "
            f"receives, but SQS counts only to {SQS_RECEIVE_LIMIT}",
        )
        require(
            self.source_retention_s < self.dlq_retention_s <= SQS_RETENTION_LIMIT_S,
            f"DLQ retention {self.dlq_retention_s} s, source retention {self.source_retention_s} s: a parked message "
            f"keeps its age, so the DLQ must keep it longer than the source, and SQS at most {SQS_RETENTION_LIMIT_S} s",
        )
        require(
            self.sweep_age_s < self.record_ttl_s,
            f"sweep age {self.sweep_age_s} s, record TTL {self.record_ttl_s} s: the sweep must come before the TTL",
        )

    @property
    def max_receives(self) -> int:
        """Receives before a message is parked: what the outage takes at the shortest waits the jitter can draw."""
        return receives_to_ride_out(self.outage_s, self.backoff_base_s, self.backoff_cap_s)

    @property
    def record_ttl_s(self) -> int:
        """A message can be as old as both retentions together; the day is for the time the step itself waited."""
        return self.source_retention_s + self.dlq_retention_s + DAY_S

    @property
    def stream_age_s(self) -> int:
        """Records older than this the relay gives up: by then the sweep sends their events."""
        return max(self.sweep_age_s, STREAM_AGE_LEAST_S)

    def timing(self, calls: Calls, *, window_s: int = 0, besides_s: float = 0) -> Timing:
        """The times of a function that makes `calls` and takes `besides_s` apart from them, all in seconds.

        Raises SettingsError when the timeout is more than Lambda allows, or a message would come back, or
        vanish, at a time that hurts.
        """
        # At worst every single request runs into its timeout.
        needs = round(calls.aws * self.aws.request_s + calls.provider * self.provider.request_s + besides_s, 3)
        timeout = math.ceil(needs + self.spare_s)
        require(timeout <= LAMBDA_LIMIT_S, f"{calls} need a timeout of {timeout} s, Lambda's limit is {LAMBDA_LIMIT_S} s")
        # Lambda retries a throttled invocation for up to five timeouts before the function sees the batch.
        # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
        visibility = 6 * timeout + window_s
        lease = timeout + self.lease_skew_s
        require(
            visibility > lease,
            f"visibility {visibility} s, lease up to {lease} s: the message of a killed worker would come back "
            "while it still counts as running",
        )
        tries = self.max_receives * max(visibility, self.backoff_cap_s)
        require(
            tries < self.source_retention_s,
            f"{self.max_receives} receives take up to {tries} s, source retention is {self.source_retention_s} s: "
            "a message would vanish before it is parked",
        )
        return Timing(needs, timeout, visibility)
