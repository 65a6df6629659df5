"""One looks, many watch."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from lab.console.book import Book
from lab.console.feed import Feed
from lab.console.look import Sight
from lab.tests.console.conftest import sight

SOON_S = 5.0
NEVER_S = 60.0  # no test waits that long: what comes, comes since somebody asked

Told = AsyncIterator[tuple[str, Any]]


class Pipelines:
    """What is looked at. `trouble`: what a look raises."""

    def __init__(self) -> None:
        self.book = Book()
        self.looks = 0
        self.trouble: Exception | None = None

    def look(self) -> Sight:
        self.looks += 1
        if self.trouble:
            raise self.trouble
        return sight(self.book)


@pytest.fixture
def pipelines() -> Pipelines:
    """Pipelines with no orders."""
    return Pipelines()


@pytest.fixture
def feed(pipelines: Pipelines) -> Iterator[Feed]:
    """A feed that looks when asked to, and not by itself."""
    made = Feed(pipelines.look, every_s=NEVER_S, ping_s=NEVER_S)
    made.start()
    yield made
    made.stop()


def run(watch: Callable[[], Awaitable[None]]) -> None:
    async def in_time() -> None:
        await asyncio.wait_for(watch(), SOON_S)

    asyncio.run(in_time())


def test_nobody_looks_while_nobody_watches(feed: Feed, pipelines: Pipelines) -> None:
    feed.look_soon()
    feed.stop()
    assert pipelines.looks == 0


def test_whoever_comes_is_told_everything_then_what_changed(feed: Feed, pipelines: Pipelines) -> None:
    async def watch() -> None:
        told: Told = feed.changes()
        kind, first = await anext(told)
        assert (kind, first["whole"], first["orders"]) == ("change", True, [])
        pipelines.book.open(1)
        feed.look_soon()
        kind, then = await anext(told)
        assert (kind, len(then["orders"]), "whole" in then) == ("change", 1, False)

    run(watch)


def test_a_second_page_is_told_everything_too(feed: Feed, pipelines: Pipelines) -> None:
    pipelines.book.open(1)

    async def watch() -> None:
        first, second = feed.changes(), feed.changes()
        assert (await anext(first))[1]["whole"]
        assert len((await anext(second))[1]["orders"]) == 1

    run(watch)


def test_trouble_is_told_and_that_it_is_over(feed: Feed, pipelines: Pipelines) -> None:
    pipelines.trouble = ConnectionRefusedError("nobody there")

    async def watch() -> None:
        told: Told = feed.changes()
        assert await anext(told) == ("trouble", "ConnectionRefusedError: nobody there")
        pipelines.trouble = None
        feed.look_soon()
        assert await anext(told) == ("trouble", "")
        assert (await anext(told))[0] == "change"

    run(watch)


def test_what_was_seen_last_stays_while_there_is_trouble(feed: Feed, pipelines: Pipelines) -> None:
    pipelines.book.open(1)

    async def watch() -> None:
        told: Told = feed.changes()
        await anext(told)
        pipelines.trouble = TimeoutError("slow")
        feed.look_soon()
        assert (await anext(told))[0] == "trouble"
        assert feed.shown is not None
        assert len(feed.shown["orders"]) == 1

    run(watch)


def test_a_quiet_page_hears_that_somebody_is_there(pipelines: Pipelines) -> None:
    feed = Feed(pipelines.look, every_s=NEVER_S, ping_s=0.01)
    feed.start()

    async def watch() -> None:
        told: Told = feed.changes()
        while (await anext(told))[0] != "ping":
            pass

    try:
        run(watch)
    finally:
        feed.stop()


def test_who_watches_is_let_go_at_the_end(feed: Feed) -> None:
    async def watch() -> None:
        told: Told = feed.changes()
        await anext(told)
        threading.Timer(0.01, feed.release).start()
        assert [kind async for kind, _ in told] == []

    run(watch)


def test_who_left_is_forgotten(feed: Feed, pipelines: Pipelines) -> None:
    async def watch() -> None:
        told = feed.changes()
        await anext(told)
        await told.aclose()

    run(watch)
    looks = pipelines.looks
    feed.look_soon()
    feed.stop()
    assert pipelines.looks <= looks + 1  # the one that may have begun
