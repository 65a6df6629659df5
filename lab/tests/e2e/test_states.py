"""The page while it loads, in trouble, disconnected and after a restart: over pipelines that only the test knows."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, expect
from tools.local.ministack import free_port

from lab.console.actions import CouldNot, Said
from lab.console.app import console
from lab.console.book import Book
from lab.console.feed import Feed
from lab.console.look import Seen, Sight
from lab.console.serve import hosts, serve_until
from lab.demo.lanes import NAIVE, OURS
from lab.tests.console.conftest import charges, done, mails, seen, sight
from lab.tests.e2e.tab import WITHIN_MS, Tab

SILENT_MS = 30_000  # more than the page waits for its server to say something


class Pipelines:
    """`may_look`: whether a look comes back; `trouble`: what it raises. Its buttons can do nothing."""

    def __init__(self) -> None:
        self.book = Book()
        self.may_look = threading.Event()
        self.trouble: Exception | None = None
        self.may_look.set()
        self._lanes: tuple[Seen, ...] = ()

    def look(self) -> Sight:
        self.may_look.wait()
        if self.trouble:
            raise self.trouble
        return sight(self.book, *self._lanes)

    def shows(self, *lanes: Seen) -> None:
        """Let them be seen so: the naive one, and ours."""
        self._lanes = lanes

    def __contains__(self, name: object) -> bool:
        return name == "send-one"

    def __call__(self, name: str) -> Said:
        raise CouldNot(f"No {name} today.")


class Server:
    """The page's server in a thread; `start` it again for another run on the same port."""

    def __init__(self, pipelines: Pipelines) -> None:
        self.pipelines = pipelines
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        self.feed = Feed(self.pipelines.look, every_s=0.1)
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        app = console(self.feed, self.pipelines, hosts(self.port))
        serving = serve_until(self._ended, app, self.feed, self.port)
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(serving))
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A running one."""
    made = Server(Pipelines())
    made.start()
    yield made
    made.pipelines.may_look.set()
    made.stop()


def test_while_it_looks_for_the_first_time_it_says_so(server: Server, open_tab: Callable[[str], Tab]) -> None:
    server.pipelines.may_look.clear()
    tab = open_tab(server.url)
    expect(tab.page.locator(".loading")).to_have_text("Looking at the pipelines…")
    expect(tab.page.locator("#lanes")).to_have_attribute("aria-busy", "true")
    server.pipelines.may_look.set()
    tab.is_live()
    expect(tab.page.locator("#lanes")).to_have_attribute("aria-busy", "false")
    expect(tab.page.locator("#none")).to_be_visible()


def test_trouble_is_shown_over_what_was_seen_last(server: Server, open_tab: Callable[[str], Tab]) -> None:
    server.pipelines.book.open(1)
    tab = open_tab(server.url)
    tab.is_live()
    server.pipelines.trouble = ConnectionRefusedError("<b>nobody</b> there")
    banner = tab.page.get_by_role("alert")
    expect(banner).to_contain_text("The local AWS does not answer")
    expect(banner).to_contain_text("<b>nobody</b> there")
    expect(tab.page.locator("tbody tr")).to_have_count(1)
    server.pipelines.trouble = None
    expect(banner).to_be_hidden()
    expect(tab.news()).to_contain_text("answers again")


def test_a_button_that_can_not_says_why(server: Server, open_tab: Callable[[str], Tab]) -> None:
    tab = open_tab(server.url)
    tab.is_live()
    tab.press("send-one")
    expect(tab.news()).to_contain_text("No send-one today.")


def test_a_connection_that_went_silent_is_said_and_found_again(
    server: Server, open_tab: Callable[[str], Tab], context: BrowserContext
) -> None:
    tab = open_tab(server.url)
    tab.excused = "ERR_INTERNET_DISCONNECTED"
    tab.page.clock.install()
    tab.page.reload()
    expect(tab.page.locator("#link")).to_have_text("Live")
    context.set_offline(True)
    tab.page.clock.fast_forward(SILENT_MS)
    expect(tab.page.locator("#link")).to_have_text("Disconnected", timeout=WITHIN_MS)
    expect(tab.page.locator("#banner")).to_contain_text("Trying again")
    tab.press("send-one")
    expect(tab.news()).to_contain_text("this page is disconnected")
    context.set_offline(False)
    expect(tab.page.locator("#link")).to_have_text("Live", timeout=WITHIN_MS)
    expect(tab.page.locator("#banner")).to_be_hidden()


def test_a_restarted_server_is_found_and_its_page_loaded_anew(server: Server, open_tab: Callable[[str], Tab]) -> None:
    server.pipelines.book.open(1)
    tab = open_tab(server.url)
    tab.is_live()
    tab.excused = "ERR_CONNECTION_REFUSED"
    expect(tab.page.locator("tbody tr")).to_have_count(1)
    server.stop()
    expect(tab.page.locator("#link")).to_have_text("Disconnected", timeout=WITHIN_MS)
    expect(tab.page.get_by_role("alert")).to_contain_text("Is “make console” still running?")
    server.pipelines.book = Book()
    server.start()
    tab.is_live()
    expect(tab.page.locator("tbody tr")).to_have_count(0)
    tab.press("send-one")
    expect(tab.news()).to_contain_text("No send-one today.")  # the new page's token holds


def test_news_of_a_wrong_is_said_once_and_its_count_kept(server: Server, open_tab: Callable[[str], Tab]) -> None:
    entry = server.pipelines.book.open(5)
    tab = open_tab(server.url)
    tab.is_live()
    server.pipelines.shows(
        seen(NAIVE, rows=[done(entry)], charged=charges(entry, 2), mailed=mails(NAIVE, entry)),
        seen(OURS, rows=[done(entry)], charged=charges(entry), mailed=mails(OURS, entry)),
    )
    expect(tab.news()).to_contain_text("Naive: order 1 charged 2 times.")
    server.pipelines.shows(seen(NAIVE, rows=[done(entry)], charged=charges(entry, 5), mailed=mails(NAIVE, entry)))
    expect(tab.news()).to_contain_text("Naive: order 1 charged 5 times.")
    expect(tab.news().locator("li")).to_have_count(1)
    expect(tab.page.locator(".verdict").first).to_have_text("✗1 customer charged more than once")
