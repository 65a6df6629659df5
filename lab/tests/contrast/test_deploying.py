"""The local stack can carry another app than ours, with as many payment sandboxes as it has lanes."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.harness.http_lambda import serve
from tools.domain import OUTPUTS
from tools.local import stack
from tools.local.cdk import Cdk
from tools.local.ministack import LocalStackError
from tools.local.running import Running
from tools.local.stack import flatten

from lab.contrast import synth_arguments
from lab.demo.lanes import NAIVE, OURS


def synthesised_with(monkeypatch: pytest.MonkeyPatch, *more: list[str]) -> list[str]:
    """The arguments of `cdk synth`."""
    ran: list[list[str]] = []
    monkeypatch.setattr(Cdk, "_run", lambda _, *arguments: ran.append([*arguments]))
    Cdk(Path("directory"), "http://127.0.0.1:4567", *more).synth()
    (arguments,) = ran
    return arguments


def test_without_further_word_the_app_of_cdk_json_is_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--app" not in synthesised_with(monkeypatch)


def test_the_contrast_is_deployed_in_its_stead_to_the_same_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = synthesised_with(monkeypatch, synth_arguments())
    assert arguments[arguments.index("--app") + 1].endswith("-m lab.contrast.app")
    assert "endpoint=http://127.0.0.1:4567" in arguments
    assert not [each for each in arguments if each.startswith("faults")]


def test_faults_come_with_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"faults_seed=7", "faults_percent=2.5"} <= set(synthesised_with(monkeypatch, synth_arguments(7, 2.5)))


def test_a_journal_and_a_choice_of_lanes_come_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = synthesised_with(monkeypatch, synth_arguments(7, 2.5, Path("journal"), [OURS, NAIVE]))
    assert {"faults_journal=journal", "lanes=ours,naive"} <= set(arguments)


def test_the_lanes_outputs_stand_beside_ours() -> None:
    ours = {name: f"our {name}" for name in OUTPUTS}
    naive = {f"Naive{name}": f"naive {name}" for name in OUTPUTS} | {"PublishOutputRefOrders": "x"}
    assert flatten({"ours": ours, "naive": naive}) == ours | {
        name: value for name, value in naive.items() if name.startswith("Naive")
    }


def test_every_lanes_payment_sandbox_is_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    def answer(lane: str) -> Any:
        def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
            asked[f"{lane} {event['rawPath']}"] += 1
            return {"statusCode": 200, "body": "{}"}

        return handler

    monkeypatch.setattr(stack, "payments_at_once", lambda _, prefix: 3 if prefix else 2)
    with serve(answer("ours")) as ours, serve(answer("naive")) as naive:
        outputs = {"PaymentSandboxUrl": ours, "NaivePaymentSandboxUrl": naive, "ApiUrl": "http://127.0.0.1:1"}
        stack.warm_up(Running("http://127.0.0.1:4567", outputs, Path()))
    assert asked == {"ours /v1/charges": 2, "naive /v1/charges": 3}


def test_a_sandbox_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "payments_at_once", lambda *_: 1)
    with serve(lambda *_: {"statusCode": 500}) as url, pytest.raises(LocalStackError, match=url):
        stack.warm_up(Running("http://127.0.0.1:4567", {"NaivePaymentSandboxUrl": url}, Path()))
