"""One local AWS with the app deployed to it for the whole session; tests keep apart by their order ids."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.app import App
from tools.local.stack import LocalStack

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The deployed app. The log of its AWS stays in pytest's temporary directory."""
    with LocalStack(tmp_path_factory.mktemp("local-aws")) as running:
        yield App(running)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's own Chromium or Chrome."""
    chromium = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if chromium is None:
        pytest.fail(f"There is none of {', '.join(CHROMIUMS)}: on Debian, apt-get install chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()
