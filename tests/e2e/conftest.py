"""One local AWS with the app deployed to it for the whole session; tests keep apart by their order ids."""

from collections.abc import Iterator

import pytest

from tests.e2e.app import App
from tools.local.stack import LocalStack


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The deployed app. The log of its AWS stays in pytest's temporary directory."""
    with LocalStack(tmp_path_factory.mktemp("local-aws")) as running:
        yield App(running)
