"""Who may look, and who may press a button. The page acts on loopback, where any web page may send requests."""

import re

import pytest
from starlette.applications import Starlette

from lab.console.actions import ActionResult
from lab.console.app import console
from lab.console.event_stream import EventStream
from lab.console.sent_orders import SentOrders
from lab.tests.console.conftest import HOST, Answer, ask, snapshot

ORIGIN = f"http://{HOST}"


class Pressed(list[str]):
    """Buttons that only note that they were pressed."""

    def __contains__(self, name: object) -> bool:
        return name == "send-one"

    def __call__(self, name: str) -> ActionResult:
        self.append(name)
        return ActionResult("Done.")


def a_page(pressed: Pressed) -> Starlette:
    return console(EventStream(lambda: snapshot(SentOrders())), pressed, frozenset({HOST, "localhost:8080"}))


@pytest.fixture
def pressed() -> Pressed:
    """What was pressed: nothing yet."""
    return Pressed()


def token_of(page: Answer) -> str:
    found = re.search(r'name="token" content="([^"]+)"', page.body)
    assert found
    return found[1]


def test_the_page_presses_its_own_buttons(pressed: Pressed) -> None:
    app = a_page(pressed)
    token = token_of(ask(app, "GET", "/"))
    answer = ask(app, "POST", "/do/send-one", origin=ORIGIN, x_console_token=token)
    assert (answer.status, pressed) == (200, ["send-one"])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1", "127.0.0.1:8081", "", None])
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/events"), ("POST", "/do/send-one")])
def test_under_another_name_it_answers_nothing(pressed: Pressed, host: str | None, method: str, path: str) -> None:
    app = a_page(pressed)
    token = token_of(ask(app, "GET", "/"))
    answer = ask(app, method, path, host=host, origin=f"http://{host}", x_console_token=token)
    assert (answer.status, pressed) == (403, [])


@pytest.mark.parametrize("origin", ["http://evil.example", "https://127.0.0.1:8080", "http://127.0.0.1:8081", "null"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/events"), ("GET", "/orders/x"), ("POST", "/do/send-one")])
def test_another_sites_page_is_refused_even_with_a_token(pressed: Pressed, origin: str, method: str, path: str) -> None:
    app = a_page(pressed)
    token = token_of(ask(app, "GET", "/"))
    answer = ask(app, method, path, origin=origin, x_console_token=token)
    assert (answer.status, pressed) == (403, [])


def test_without_an_origin_nothing_is_done(pressed: Pressed) -> None:
    app = a_page(pressed)
    answer = ask(app, "POST", "/do/send-one", x_console_token=token_of(ask(app, "GET", "/")))
    assert (answer.status, pressed) == (403, [])


@pytest.mark.parametrize("token", [None, "", ".", "guess", "guess.guess", "é.é"])
def test_without_the_pages_token_nothing_is_done(pressed: Pressed, token: str | None) -> None:
    answer = ask(a_page(pressed), "POST", "/do/send-one", origin=ORIGIN, x_console_token=token)
    assert (answer.status, pressed) == (403, [])


@pytest.mark.parametrize("path", ["/", "/static/console.js", "/static/console.css", "/orders/none"])
def test_the_browser_is_told_to_load_and_ask_nothing_elsewhere(pressed: Pressed, path: str) -> None:
    policy = ask(a_page(pressed), "GET", path).headers["content-security-policy"]
    allowed = {source for rule in policy.split(";") for source in rule.split()[1:]}
    assert allowed == {"'none'", "'self'"}
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'none'" in policy
