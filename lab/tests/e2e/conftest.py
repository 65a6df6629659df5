"""A real browser, and pages in it that are watched."""

import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from lab.tests.e2e.console_tab import Tab

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


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


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A desktop's window."""
    made = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    yield made
    made.close()


@pytest.fixture
def open_tab(context: BrowserContext) -> Iterator[Callable[[str], Tab]]:
    """Opens the page at a URL; at the end none may have logged an error or asked another host."""
    tabs: dict[str, Tab] = {}

    def open_tab(url: str) -> Tab:
        tab = tabs[urlsplit(url).netloc] = Tab(context.new_page())
        tab.page.on("console", lambda said: tab.errors.append(said.text) if said.type in ("error", "warning") else None)
        tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.page.on("request", lambda request: tab.asked.add(urlsplit(request.url).netloc))
        tab.page.goto(url)
        return tab

    yield open_tab
    for host, tab in tabs.items():
        tab.is_clean(host)
