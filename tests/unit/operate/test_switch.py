"""Pausing and resuming a queue: asked once, waited for, safe to repeat."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.harness.moto_world import World
from tests.unit.operate.conftest import Session
from tools.account import Stop
from tools.operate.commands import SWITCH_DEADLINE_S, mapping_state, switch
from tools.operate.deployment import Deployment


@dataclass
class Mappings:
    """Lambda's answers about one mapping, which takes `takes` looks to get where it was told to go."""

    state: str = "Enabled"
    takes: int = 2
    busy: int = 0  # so many updates are refused, because one is under way
    asked: list[bool] = field(default_factory=list)
    _wanted: str = ""
    _looks: int = 0

    def list_event_source_mappings(self, EventSourceArn: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        assert EventSourceArn.endswith(":payments")
        return {"EventSourceMappings": [{"UUID": "m-1", "State": self.state}]}

    def get_event_source_mapping(self, UUID: str) -> dict[str, Any]:  # noqa: N803
        self._looks += 1
        if self._wanted and self._looks > self.takes:
            self.state = self._wanted
        return {"UUID": UUID, "State": self.state}

    def update_event_source_mapping(self, UUID: str, Enabled: bool) -> dict[str, Any]:  # noqa: N803
        self.asked.append(Enabled)
        if len(self.asked) <= self.busy:
            raise ClientError({"Error": {"Code": "ResourceInUseException"}}, "UpdateEventSourceMapping")
        self._wanted = "Enabled" if Enabled else "Disabled"
        self.state = "Enabling" if Enabled else "Disabling"
        self._looks = 0
        return {"UUID": UUID, "State": self.state}


def of(deployment: Deployment, mappings: Mappings) -> Deployment:
    """The stage with this mapping."""

    class Mapped(Session):
        def client(self, service: str, **how: Any) -> Any:
            return mappings if service == "lambda" else super().client(service, **how)

    return Deployment("test", "a test", deployment.outputs, Mapped(deployment.session.functions))


def test_a_queue_is_paused_when_lambda_says_so_and_resumed_likewise(world: World, deployment: Deployment) -> None:
    world.sqs.send_message(QueueUrl=world.queues["payments"], MessageBody="{}")
    mappings = Mappings()
    stage = of(deployment, mappings)

    off = switch(stage, "payments", on=False)
    assert (off.was, off.now, off.waiting, mappings.state) == ("Enabled", "Disabled", 1, "Disabled")
    on = switch(stage, "payments", on=True)
    assert (on.was, on.now, mappings.state) == ("Disabled", "Enabled", "Enabled")
    assert mappings.asked == [False, True]


@pytest.mark.usefixtures("world")
def test_to_pause_what_is_paused_asks_for_nothing(deployment: Deployment) -> None:
    mappings = Mappings(state="Disabled")
    assert switch(of(deployment, mappings), "payments", on=False).was == "Disabled"
    assert mappings.asked == []
    assert mapping_state(of(deployment, mappings), "payments") == "Disabled"


@pytest.mark.usefixtures("world")
def test_it_asks_again_while_another_update_is_under_way(deployment: Deployment) -> None:
    mappings = Mappings(busy=2)
    assert switch(of(deployment, mappings), "payments", on=False).now == "Disabled"
    assert mappings.asked == [False] * 3


def test_it_gives_up_in_the_end_and_says_where_it_stands(world: World, deployment: Deployment) -> None:
    began_ms = world.clock.now_ms()
    with pytest.raises(Stop, match="payments is still Disabling after 300 s"):
        switch(of(deployment, Mappings(takes=10_000)), "payments", on=False)
    assert world.clock.now_ms() - began_ms <= (SWITCH_DEADLINE_S + 2) * 1000
