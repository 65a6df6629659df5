"""Pages in a real browser that are watched."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext

from lab.tests.e2e.console_tab import Tab
from tests.e2e.conftest import browser

__all__ = ["browser"]


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
