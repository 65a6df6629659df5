"""Forgetting a record: what was shown and nothing else, and not where it would hurt."""

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest

from tests.harness.driver import Pipeline
from tests.harness.moto_world import World
from tests.unit.operate.test_audit import change, order_done
from tests.unit.operate.test_commands import at_hand
from tools.account import Stop
from tools.operate import __main__ as command
from tools.operate import commands
from tools.operate.deployment import Deployment

__all__ = ["at_hand"]

KEY = "payment.charge#ord_1"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What the person will type."""
    return lambda line: monkeypatch.setattr("sys.stdin", StringIO(f"{line}\n"))


@pytest.mark.usefixtures("at_hand")
def test_it_shows_the_record_and_deletes_it_when_its_key_was_typed(
    pipeline: Pipeline, typed: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    order_done(pipeline)
    typed(KEY)
    assert command.main(["forget", KEY]) == 0
    written = capsys.readouterr()
    assert "COMPLETED" in written.err
    assert "validation, data, outbox" in written.err
    assert f"{KEY}: forgotten" in written.out
    assert "pi_" not in written.err  # what the result holds is not shown
    assert pipeline.world.record(KEY) is None
    assert command.main(["forget", KEY]) == 1
    assert "there is no such record" in capsys.readouterr().out


@pytest.mark.usefixtures("at_hand")
@pytest.mark.parametrize("answer", ["", "yes", "payment.charge#ord_2"])
def test_without_the_key_nothing_is_done(pipeline: Pipeline, typed: Callable[[str], None], answer: str) -> None:
    order_done(pipeline)
    typed(answer)
    assert command.main(["forget", KEY]) == 2
    assert pipeline.world.record(KEY) is not None


@pytest.mark.usefixtures("at_hand")
def test_consent_given_before_asks_nothing_and_only_json_goes_out(
    pipeline: Pipeline, typed: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    order_done(pipeline)
    typed("no")
    capsys.readouterr()
    assert command.main(["forget", KEY, "--yes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["forgotten"], said["record"]["status"]) == (True, "COMPLETED")


def test_a_record_whose_lease_runs_is_left_alone_until_it_has_ended(
    world: World, pipeline: Pipeline, deployment: Deployment
) -> None:
    order_done(pipeline)
    until = world.clock.now_ms() + 1
    change(world, "idempotency", KEY, "SET #status = :s, in_progress_expiration = :t", s={"S": "INPROGRESS"},
           t={"N": str(until)})  # fmt: skip
    image = commands.find_record(deployment, KEY)
    assert image is not None
    with pytest.raises(Stop, match="lease ends at 20"):
        commands.require_forgettable(image, second_mail=False)
    world.clock.advance(0.001)
    commands.require_forgettable(image, second_mail=False)


def test_a_mails_record_needs_a_word_about_the_second_mail(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)
    image = commands.find_record(deployment, "email.send#ord_1")
    assert image is not None
    with pytest.raises(Stop, match="SECOND_MAIL=1"):
        commands.require_forgettable(image, second_mail=False)
    commands.require_forgettable(image, second_mail=True)


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("SET #status = :v", {"v": {"S": "INPROGRESS"}}),
        ("SET attempt = :v", {"v": {"N": "2"}}),
        ("SET effect = :v", {"v": {"S": "noted meanwhile"}}),
        ("REMOVE #data", {}),
    ],
)
def test_a_record_that_changed_since_it_was_shown_stays(
    world: World, pipeline: Pipeline, deployment: Deployment, expression: str, values: dict[str, Any]
) -> None:
    order_done(pipeline)
    image = commands.find_record(deployment, KEY)
    assert image is not None
    change(world, "idempotency", KEY, expression, **values)
    with pytest.raises(Stop, match="has changed"):
        commands.forget(deployment, image)
    assert world.record(KEY) is not None


@pytest.mark.parametrize("key", ["ord_1", "payment.charge", "payment.charge#", "stock.take#ord_1"])
def test_only_keys_of_ours_are_looked_for(deployment: Deployment, key: str) -> None:
    with pytest.raises(Stop, match="not the key of a record"):
        commands.find_record(deployment, key)
