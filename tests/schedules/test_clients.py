"""Light clients and recorded runs change no schedule."""

from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.core.models import botocore_stubber

from tests.schedules import clients
from tests.schedules.clients import REAL, Clients
from tests.schedules.environment import explorer_environment
from tests.schedules.equivalence import compare
from tests.schedules.explorer import every_state
from tests.schedules.model import Answer, Call, read, response
from tests.schedules.scenarios import SCENARIOS


class RealClients:
    """Real clients beside the light ones: each translates the same parameters and the same answer."""

    def __init__(self) -> None:
        self.compared: set[tuple[str, bytes, bytes]] = set()
        self.differences: list[str] = []

    def compare(self, client: Any, operation: str, params: dict[str, Any], call: Call, answer: Answer) -> None:
        """Translate with a real client, and note what differs."""
        if (operation, call.raw, answer.content) in self.compared:
            return
        self.compared.add((operation, call.raw, answer.content))
        sent: list[Call] = []

        def in_place_of_the_network(event_name: str, request: Any, **_: Any) -> Any:
            sent.append(read(event_name, request))
            return response(call, answer)

        client.meta.events.unregister("before-send", botocore_stubber)
        client.meta.events.register_first("before-send", in_place_of_the_network)
        real = outcome(REAL, client, operation, params)
        client.meta.events.unregister("before-send", in_place_of_the_network)
        light = outcome(clients.parsed, client, operation, answer)
        if sent != [call] or real != light:
            self.differences.append(f"{call}, not {sent}; {light}, not {real}")


def outcome(call: Any, *arguments: Any) -> object:
    """Return what a call returns or raises, comparable."""
    try:
        return call(*arguments)
    except ClientError as error:
        return type(error).__name__, str(error), error.response, error.operation_name


def test_light_clients_send_return_and_raise_what_real_clients_do() -> None:
    real = RealClients()
    operations = set()
    # The inner patch ends first. The other order would leave the environment's patch in place.
    with explorer_environment() as environment, pytest.MonkeyPatch.context() as patch:
        light = Clients(environment.send, environment.new_id, light=True)

        def both(client: Any, operation: str, params: dict[str, Any]) -> Any:
            params = light.with_token(operation, params)
            call = light.call(client, operation, params)
            answer = environment.send(call)
            operations.add(operation)
            real.compare(client, operation, params, call, answer)
            return clients.parsed(client, operation, answer)

        patch.setattr(BaseClient, "_make_api_call", both)
        for name in ("order-batch", "order-refused", "payment-cold", "email-once", "relay", "api-reused"):
            for _ in every_state(environment, SCENARIOS[name], 1):
                pass

    assert not real.differences, "\n".join(real.differences[:3])
    assert operations >= {
        *("GetItem", "UpdateItem", "TransactWriteItems", "PutItem"),
        *("SendMessage", "SendMessageBatch", "ChangeMessageVisibilityBatch", "SendEmail", "PutObject"),
        "GetSecretValue",
    }
    assert len(real.compared) > 300


@pytest.mark.parametrize(("name", "faults"), [("order", 1), ("relay", 1), ("api", 1), ("email-once", 1)])
def test_each_schedule_ends_as_with_real_clients_and_a_new_run_of_each_handler(name: str, faults: int) -> None:
    report = compare(name, faults)

    assert not report.violations, "\n".join(f"{schedule}  {what}" for schedule, what in report.violations[:3])
    assert report.schedules > 20
