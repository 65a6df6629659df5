"""Each stage is synthesised once a session."""

from collections.abc import Callable

import pytest

from tests.harness.driver import pipeline
from tests.harness.every_path import every_path
from tests.harness.moto_world import world
from tests.harness.observations import mailbox
from tests.harness.payment_fixtures import payments, provider_connection
from tests.harness.synth import STAGES, Synthesised, synthesise

__all__ = [
    "every_path",
    "mailbox",
    "payments",
    "pipeline",
    "provider_connection",
    "world",
]  # fixtures, besides those below


@pytest.fixture(scope="session")
def synthesised(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Synthesised]:
    known: dict[str, Synthesised] = {}

    def get(stage: str) -> Synthesised:
        if stage not in known:
            known[stage] = synthesise(tmp_path_factory.mktemp(stage), stage, **STAGES[stage])
        return known[stage]

    return get


@pytest.fixture(params=list(STAGES))
def any_stage(request: pytest.FixtureRequest, synthesised: Callable[[str], Synthesised]) -> Synthesised:
    return synthesised(request.param)


@pytest.fixture
def local(synthesised: Callable[[str], Synthesised]) -> Synthesised:
    return synthesised("local")


@pytest.fixture
def sandbox(synthesised: Callable[[str], Synthesised]) -> Synthesised:
    return synthesised("sandbox")


@pytest.fixture
def prod(synthesised: Callable[[str], Synthesised]) -> Synthesised:
    return synthesised("prod")
