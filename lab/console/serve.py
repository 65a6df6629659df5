"""Serves the page on loopback until it is told to stop."""

import asyncio
import signal
from typing import cast

from hypercorn.asyncio import serve as hypercorn
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework
from starlette.applications import Starlette

from lab.console.feed import Feed

LEAVE_S = 1.0  # for answers under way at the end


def hosts(port: int) -> frozenset[str]:
    """What the page's address may be called."""
    return frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})


def serve(app: Starlette, feed: Feed, port: int) -> None:
    """Until SIGINT or SIGTERM."""

    async def until_signalled() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await serve_until(ended, app, feed, port)

    asyncio.run(until_signalled())


async def serve_until(ended: asyncio.Event, app: Starlette, feed: Feed, port: int) -> None:
    """Until `ended` is set."""

    async def told_to_stop() -> None:
        await ended.wait()
        feed.release()  # or open streams would be waited for

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    config.graceful_timeout = LEAVE_S
    same = cast(ASGIFramework, app)  # hypercorn and Starlette each have types of their own for ASGI
    await hypercorn(same, config, shutdown_trigger=told_to_stop)
