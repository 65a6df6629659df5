"""What tests observe from outside: the mailbox, the log, the metrics."""

import json
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from moto.ses.models import ses_backends

from shared.idempotency import client, telemetry
from tests.harness.moto_world import World

SENDER = "shop@example.com"


class Mailbox:
    """All mails that were handed to SES."""

    def __init__(self) -> None:
        client("sesv2").create_email_identity(EmailIdentity=SENDER)

    @property
    def mails(self) -> list[tuple[str, str]]:
        """Recipient and subject of each."""
        sent: Any = ses_backends["123456789012"]["eu-west-1"].sent_messages
        return [(mail.destinations["ToAddresses"][0], mail.subject) for mail in sent]


class Log:
    """All log lines from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._stream = StringIO()
        monkeypatch.setattr(telemetry.logger.registered_handler, "stream", self._stream)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def saying(self, message: str) -> list[dict[str, Any]]:
        """The lines with this message."""
        return [line for line in self.lines if line["message"] == message]


class Metrics:
    """All counts that were emitted since the last look, by operation."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def of(self, operation: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for line in self._capsys.readouterr().out.splitlines():
            emitted = json.loads(line) if line.startswith("{") else {}
            if emitted.get("operation") == operation and "_aws" in emitted:
                for metric in emitted["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
                    counts[metric["Name"]] += int(sum(emitted[metric["Name"]]))
        return counts


@pytest.fixture
def mailbox(world: World) -> Mailbox:  # noqa: ARG001 - it must stand first
    return Mailbox()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(monkeypatch)


@pytest.fixture
def metrics(capsys: pytest.CaptureFixture[str]) -> Metrics:
    return Metrics(capsys)
