"""The smoke test for real accounts, on the local one."""

import boto3

from tests.e2e.app import App
from tools.local.ministack import REGION
from tools.operate.deployment import Deployment
from tools.smoke import smoke


def test_a_handful_of_repeated_orders_ends_as_promised(app: App) -> None:
    running = app.running
    session = boto3.session.Session("test", "test", region_name=REGION)

    assert smoke(Deployment("sandbox", "here", running.outputs, session, running.endpoint)) == []
