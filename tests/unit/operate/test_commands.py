"""The command line: finding the stage, exit status, and what goes to people and to machines."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.harness.driver import Pipeline
from tests.harness.interceptor import refused
from tests.harness.moto_world import World
from tests.unit.operate.conftest import FUNCTIONS
from tests.unit.operate.test_audit import order_done, order_placed
from tests.unit.operate.test_dlq import parked
from tools import account
from tools.local import state
from tools.operate import __main__ as command
from tools.operate import deployment as deployments
from tools.operate.deployment import Deployment, find


class Stacks:
    """A session in which these stacks are deployed. As under a narrow policy, none may be listed."""

    def __init__(self, refuses: str = "", **outputs: dict[str, str]) -> None:
        self._refuses, self._outputs = refuses, outputs

    def client(self, *_: Any, **__: Any) -> "Stacks":
        return self

    def describe_stacks(self, **asked: str) -> dict[str, Any]:
        name = asked["StackName"]
        if self._refuses:
            raise ClientError({"Error": {"Code": self._refuses, "Message": "no"}}, "DescribeStacks")
        if name not in self._outputs:
            message = f"Stack with id {name} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")
        listed = [{"OutputKey": key, "OutputValue": value} for key, value in self._outputs[name].items()]
        return {"Stacks": [{"StackName": name, "Outputs": listed} if listed else {"StackName": name}]}


def deployed(monkeypatch: pytest.MonkeyPatch, refuses: str = "", **outputs: dict[str, str]) -> None:
    stacks = Stacks(refuses, **{name.replace("_", "-"): of for name, of in outputs.items()})
    where = account.Account("123456789012", "eu-central-1", "arn:aws:iam::123456789012:user/me", stacks)
    monkeypatch.setattr(deployments, "current_account", lambda: where)


@pytest.fixture
def at_hand(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """The deployment that every stage is."""
    monkeypatch.setattr(command, "find", lambda _: deployment)
    return deployment


def test_the_stage_is_that_of_its_stacks_and_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(
        monkeypatch,
        effectively_once_prod_stateful={"OrdersTableName": "prod-orders"},
        effectively_once_sandbox_stateful={"OrdersTableName": "sandbox-orders"},
        effectively_once_prod_pipeline={"OrdersQueueUrl": "prod-queue"},
        somebody_elses={"OrdersTableName": "theirs"},
    )
    found = find("prod")
    assert found.outputs == {"OrdersTableName": "prod-orders", "OrdersQueueUrl": "prod-queue"}
    assert found.where == "prod in 123456789012 eu-central-1"
    with pytest.raises(account.Stop, match="stage prod have no queues in their outputs"):
        found.dlq_url("emails")


def test_without_stacks_it_says_where_it_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(monkeypatch, somebody_elses={})
    with pytest.raises(account.Stop, match="no stacks of stage prod in account 123456789012, region eu-central-1"):
        find("prod")


@pytest.mark.parametrize("code", ["AccessDenied", "ValidationError"])
def test_stacks_that_can_not_be_asked_for_are_not_taken_for_absent(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    deployed(monkeypatch, refuses=code, effectively_once_prod_stateful={})
    with pytest.raises(account.Stop, match=f"Cannot read the stacks .*{code}"):
        find("prod")


def test_without_a_local_stack_it_says_make_up_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(state, "STATE", tmp_path / "state.json")
    with pytest.raises(account.Stop, match="make up"):
        find("local")


def test_nothing_parked_is_status_0_and_anything_is_1(
    world: World, at_hand: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (at_hand.stage, command.main(["dlq"])) == ("test", 0)
    assert "payments: empty" in capsys.readouterr().out

    parked(world, "payments", "ord_1", "key_reused")
    parked(world, "payments", "ord_2")
    assert command.main(["dlq"]) == 1
    said = capsys.readouterr().out
    assert "payments: 2 parked" in said
    assert "1 without a reason (received too often)" in said
    assert "ord_1  key_reused  2026-01-01T00:00:00.000Z" in said


@pytest.mark.usefixtures("at_hand")
def test_json_is_all_that_goes_to_standard_output(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    parked(world, "payments", "ord_1", "key_reused")
    for arguments in (["dlq"], ["redrive", "payments", "--dry-run"], ["audit"], ["trace", "ord_1"]):
        command.main([*arguments, "--json"])
        written = capsys.readouterr()
        assert json.loads(written.out)["stage"] == "test"
        assert f"{arguments[0]}: a test" in written.err


@pytest.mark.usefixtures("at_hand")
def test_a_redrive_is_status_0_unless_something_was_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.wire.always("ListMessageMoveTasks", refused("InvalidAction"))
    for n in range(3):
        parked(world, "payments", f"ord_{n}")
    parked(world, "payments", "ord_3", "key_reused")
    world.wire.plan("SendMessage", refused("AccessDenied", 403))

    assert command.main(["redrive", "payments"]) == 1
    said = capsys.readouterr().out
    assert "payments: moved 2 without a reason" in said
    assert "left, not selected: 1 key_reused" in said
    assert "failed, still parked: 1 AccessDenied" in said
    assert command.main(["redrive", "payments", "--max", "1"]) == 0
    assert command.main(["redrive", "payments", "--all"]) == 0


@pytest.mark.usefixtures("at_hand")
def test_the_audit_is_status_1_where_something_is_wrong(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    order_done(pipeline)
    assert command.main(["audit"]) == 0
    assert "Nothing is wrong." in capsys.readouterr().out

    pipeline.world.empty("idempotency", "id")
    assert command.main(["audit"]) == 0
    assert "1 record_missing (a note)" in capsys.readouterr().out

    order_placed(pipeline, "ord_2")
    assert command.main(["audit", "--repair"]) == 1
    said = capsys.readouterr().out
    assert "1 event_missing: late, and no trace of its event" in said
    assert "sent ord_2/order.placed" in said
    assert "1 thing is wrong." in said


@pytest.mark.usefixtures("at_hand")
def test_a_trace_is_status_1_where_nobody_knows_the_order(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["trace", "ord_1"]) == 1
    assert "no such order is known" in capsys.readouterr().out
    order_done(pipeline)
    assert command.main(["trace", "ord_1"]) == 0
    said = capsys.readouterr().out
    assert "ord_1: state paid, total 2599" in said
    assert "payment.charge  COMPLETED  1" in said


@pytest.mark.usefixtures("at_hand")
def test_what_could_not_run_is_status_2_with_its_reason(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.wire.plan("GetQueueAttributes", refused("AccessDenied", 403))
    assert command.main(["dlq"]) == 2
    assert command.main(["redrive", "relay"]) == 2
    written = capsys.readouterr()
    assert "AccessDenied" in written.err
    assert "REPAIR=1" in written.err
    for wrong in (
        ["trace", "a b"],
        ["audit", "--age", "-1"],
        ["redrive", "orders", "--max", "0"],
    ):
        with pytest.raises(SystemExit) as ended:
            command.main(wrong)
        assert ended.value.code == 2


@pytest.fixture
def with_a_new_stage(world: World, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A stage that a copier added: nothing but its outputs says so."""
    urls = {name: world.sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("shipments", "shipments-dlq")}
    world.queues.update(urls)
    new = {
        "ShipmentsQueueUrl": urls["shipments"],
        "ShipmentsDlqUrl": urls["shipments-dlq"],
        "ShipFunctionName": "ship",
        "GiftWrapFunctionName": "gift_wrap",
    }
    found = replace(deployment, outputs={**deployment.outputs, **new})
    monkeypatch.setattr(command, "find", lambda _: found)
    return found


def test_a_new_stages_queue_and_functions_are_found_by_its_outputs(
    world: World, with_a_new_stage: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert with_a_new_stage.queues == ["emails", "orders", "payments", "shipments"]
    assert set(with_a_new_stage.functions) == {*FUNCTIONS, "ship", "gift_wrap"}

    world.wire.always("ListMessageMoveTasks", refused("InvalidAction"))
    parked(world, "shipments", "ord_1", "no_such_address")
    assert command.main(["dlq"]) == 1
    assert "ord_1  no_such_address" in capsys.readouterr().out
    command.main(["audit"])
    assert "shipments DLQ, reason no_such_address" in capsys.readouterr().out
    assert command.main(["redrive", "shipments", "--all"]) == 0
    assert len(world.messages("shipments")) == 1


@pytest.mark.usefixtures("with_a_new_stage")
@pytest.mark.parametrize("asked", [["redrive", "nowhere"], ["pause", "relay"], ["discard", "nowhere", "none"]])
def test_a_queue_that_the_stage_has_not_is_status_2_and_those_that_it_has_are_named(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(asked) == 2
    assert f"no queue '{asked[1]}'. QUEUE=emails|orders|payments|shipments" in capsys.readouterr().err


@pytest.mark.usefixtures("at_hand")
def test_an_interruption_is_status_2_and_gives_back_what_was_held(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.wire.always("ListMessageMoveTasks", refused("InvalidAction"))
    parked(world, "payments", "ord_1")
    parked(world, "payments", "ord_2", "key_reused")

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    world.wire.plan("SendMessage", interrupted)
    assert command.main(["redrive", "payments"]) == 2
    assert "safe to run it again" in capsys.readouterr().err
    assert len(world.messages("payments-dlq")) == 2
