"""The smoke test for real accounts, on the local one."""

from tests.e2e.app import App
from tools.operate.deployment import Deployment
from tools.smoke import smoke


def test_a_handful_of_repeated_orders_ends_as_promised(app: App) -> None:
    running = app.running
    assert smoke(Deployment("sandbox", "here", running.outputs, running.session, running.endpoint)) == []
