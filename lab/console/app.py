"""The page's routes: itself, what happens (server-sent events), an order's timeline, and the buttons."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from botocore.exceptions import BotoCoreError, ClientError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from stripe import StripeError
from tools.account import Stop

from lab.console.actions import CouldNot, Said
from lab.console.feed import Feed
from lab.console.guard import Guard, Tokens
from lab.console.view import timelines

STATIC = Path(__file__).parent / "static"


class Buttons(Protocol):
    """What actions.Actions is to this app."""

    def __contains__(self, name: str) -> bool: ...
    def __call__(self, name: str) -> Said: ...


def console(feed: Feed, buttons: Buttons, hosts: frozenset[str]) -> Starlette:
    """`hosts`: what the page's address may be called, port included."""
    tokens = Tokens()
    page = (STATIC / "index.html").read_text()

    def index(_: Request) -> Response:
        return HTMLResponse(page.replace("{{token}}", tokens.new()))

    async def events(_: Request) -> Response:
        async def lines() -> AsyncIterator[str]:
            async for kind, data in feed.changes():
                yield f"event: {kind}\ndata: {json.dumps(data)}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    def order(request: Request) -> Response:
        found = timelines(feed.sight, request.path_params["id"]) if feed.sight else None
        if found is None:
            return JSONResponse({"could_not": "This order is not known, or no longer."}, 404)
        return JSONResponse(found)

    def press(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in buttons:
            return JSONResponse({"could_not": f"There is no button {name!r}."}, 404)
        try:
            said = buttons(name)
        except (CouldNot, Stop) as refusal:
            return JSONResponse({"could_not": str(refusal)})  # an answer, no error: browsers log those as failures
        except (BotoCoreError, ClientError, StripeError, OSError) as error:
            return JSONResponse({"could_not": f"The local AWS did not do it. {error}"}, 502)
        finally:
            feed.look_soon()
        return JSONResponse({"said": said.text, "report": list(said.report)})

    return Starlette(
        routes=[
            Route("/", index),
            Route("/events", events),
            Route("/orders/{id}", order),
            Route("/do/{name}", press, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, hosts=hosts, tokens=tokens)],
        lifespan=_looking(feed),
    )


def _looking(feed: Feed) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        feed.start()
        try:
            yield
        finally:
            feed.stop()

    return lifespan
