"""Serve the page on loopback."""

import asyncio
import signal
from typing import cast

from hypercorn.asyncio import serve as hypercorn
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework
from starlette.applications import Starlette

from lab.console.event_stream import EventStream

LEAVE_S = 1.0  # for responses at shutdown


def hosts(port: int) -> frozenset[str]:
    """The allowed values of the Host header."""
    return frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})


def serve(app: Starlette, event_stream: EventStream, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""

    async def until_signalled() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await serve_until(ended, app, event_stream, port)

    asyncio.run(until_signalled())


async def serve_until(ended: asyncio.Event, app: Starlette, event_stream: EventStream, port: int) -> None:
    """Serve until `ended` is set."""

    async def wait_for_end() -> None:
        await ended.wait()
        event_stream.release()  # the server waits for open streams otherwise

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    config.graceful_timeout = LEAVE_S
    same = cast(ASGIFramework, app)  # hypercorn and Starlette have different types for ASGI
    await hypercorn(same, config, shutdown_trigger=wait_for_end)
