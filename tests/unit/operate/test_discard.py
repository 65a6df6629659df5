"""Discarding: kept first, deleted second, and only what was asked for and shown."""

import json
from io import StringIO
from pathlib import Path

import pytest

from tests.harness.interceptor import Killed, killed_before
from tests.harness.moto_world import World
from tests.unit.operate.test_commands import at_hand
from tests.unit.operate.test_dlq import parked
from tools.operate import __main__ as command
from tools.operate.commands import discard, discard_file, discardable
from tools.operate.deployment import Deployment

__all__ = ["at_hand"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def kept(deployment: Deployment) -> list[dict[str, object]]:
    return [json.loads(line) for line in discard_file(deployment).read_text().splitlines()]


def test_messages_of_the_reason_go_to_the_file_and_all_others_stay(world: World, deployment: Deployment) -> None:
    for n in range(12):
        parked(world, "orders", f"bad_{n}", "unparsable")
    parked(world, "orders", "ord_1", "key_reused")
    parked(world, "orders", "ord_2")

    done = discard(deployment, "orders", "unparsable", discardable(deployment, "orders", "unparsable"))

    assert (done.discarded, len(kept(deployment))) == (12, 12)
    assert len(world.messages("orders-dlq")) == 2


def test_a_line_of_the_file_sends_the_message_back_as_it_was(world: World, deployment: Deployment) -> None:
    parked(world, "orders", "ord_1", "unparsable", body="Ünlesbar")
    discard(deployment, "orders", "unparsable", discardable(deployment, "orders", "unparsable"))
    (line,) = kept(deployment)

    world.sqs.send_message(**line)

    (message,) = world.messages("orders-dlq")
    assert message["Body"] == "Ünlesbar"
    assert message["MessageAttributes"]["reason"]["StringValue"] == "unparsable"
    assert message["MessageAttributes"]["first_parked_at"]["StringValue"] == "2026-01-01T00:00:00.000Z"


def test_only_its_owner_may_read_the_file_also_if_it_was_there(world: World, deployment: Deployment) -> None:
    discard_file(deployment).write_text("")
    discard_file(deployment).chmod(0o644)
    parked(world, "orders", "ord_1", "unparsable")
    discard(deployment, "orders", "unparsable", discardable(deployment, "orders", "unparsable"))
    assert discard_file(deployment).stat().st_mode & 0o777 == 0o600


def test_one_that_dies_before_the_delete_has_kept_the_message_and_left_it(world: World, deployment: Deployment) -> None:
    parked(world, "orders", "ord_1", "unparsable")
    ids = discardable(deployment, "orders", "unparsable")
    world.wire.plan("DeleteMessage", killed_before)
    with pytest.raises(Killed):
        discard(deployment, "orders", "unparsable", ids)
    assert (len(kept(deployment)), discardable(deployment, "orders", "unparsable")) == (1, ids)

    discard(deployment, "orders", "unparsable", ids)
    assert (len(kept(deployment)), world.messages("orders-dlq")) == (2, [])


def test_what_was_parked_after_the_question_stays(world: World, deployment: Deployment) -> None:
    parked(world, "orders", "ord_1", "unparsable")
    ids = discardable(deployment, "orders", "unparsable")
    parked(world, "orders", "ord_2", "unparsable")
    assert discard(deployment, "orders", "unparsable", ids).discarded == 1
    assert len(world.messages("orders-dlq")) == 1


@pytest.mark.usefixtures("at_hand")
def test_queue_and_reason_must_be_typed(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], deployment: Deployment
) -> None:
    parked(world, "orders", "ord_1", "unparsable")
    monkeypatch.setattr("sys.stdin", StringIO("unparsable\n"))
    assert command.main(["discard", "orders", "unparsable"]) == 2
    assert not discard_file(deployment).exists()
    monkeypatch.setattr("sys.stdin", StringIO("orders unparsable\n"))
    assert command.main(["discard", "orders", "unparsable"]) == 0
    written = capsys.readouterr()
    assert "That file holds customers' data" in written.err
    assert str(discard_file(deployment)) in written.out
    assert command.main(["discard", "orders", "unparsable"]) == 0
    assert "nothing is parked for reason unparsable" in capsys.readouterr().out
