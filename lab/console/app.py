"""Routes of the page: the page itself, its event stream, the history of an order, and the buttons."""

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

from lab.console.actions import ActionRefused, ActionResult
from lab.console.event_stream import EventStream
from lab.console.guard import Guard, Tokens
from lab.console.page_state import timelines

STATIC = Path(__file__).parent / "static"


class Buttons(Protocol):
    """The interface of actions.Actions."""

    def __contains__(self, name: str) -> bool: ...
    def __call__(self, name: str) -> ActionResult: ...


def console(event_stream: EventStream, buttons: Buttons, hosts: frozenset[str]) -> Starlette:
    """The web application. `hosts` are the allowed values of the Host header, with port."""
    tokens = Tokens()
    page = (STATIC / "index.html").read_text()

    def index(_: Request) -> Response:
        return HTMLResponse(page.replace("{{token}}", tokens.new()))

    async def events(_: Request) -> Response:
        async def lines() -> AsyncIterator[str]:
            async for kind, data in event_stream.changes():
                yield f"event: {kind}\ndata: {json.dumps(data)}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    def order(request: Request) -> Response:
        histories = timelines(event_stream.snapshot, request.path_params["id"]) if event_stream.snapshot else None
        if histories is None:
            return JSONResponse({"refused": "This order is not known any more."}, 404)
        return JSONResponse(histories)

    def press(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in buttons:
            return JSONResponse({"refused": f"There is no button {name!r}."}, 404)
        try:
            result = buttons(name)
        except (ActionRefused, Stop) as refusal:
            return JSONResponse({"refused": str(refusal)})  # status 200: browsers log other statuses as errors
        except (BotoCoreError, ClientError, StripeError, OSError) as error:
            return JSONResponse({"refused": f"The local AWS failed. {error}"}, 502)
        finally:
            event_stream.refresh_soon()
        return JSONResponse({"text": result.text, "report": list(result.report)})

    return Starlette(
        routes=[
            Route("/", index),
            Route("/events", events),
            Route("/orders/{id}", order),
            Route("/do/{name}", press, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, hosts=hosts, tokens=tokens)],
        lifespan=_looking(event_stream),
    )


def _looking(event_stream: EventStream) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        event_stream.start()
        try:
            yield
        finally:
            event_stream.stop()

    return lifespan
