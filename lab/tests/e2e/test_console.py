"""`make console` as a person has it: the page in a real browser, on a real deploy, until Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from tools.local import processes
from tools.local.local_deployment import LocalDeployment
from tools.local.ministack import ROOT, free_port, is_free
from tools.local.observe import Ledger
from tools.local.stack import flatten
from tools.progress import wait_until

from lab.tests.e2e.console_tab import WITHIN_MS, Tab
from lab.variants import NAIVE, THIS_REPO, Variant

UP_WITHIN_S = 400.0
NAIVELY, HERE = 0, 1  # columns


@dataclass
class Console:
    """`make console` as a process. `directory`: where its local AWS's directory is made."""

    process: subprocess.Popen[str]
    url: str
    directory: Path

    @property
    def outputs(self) -> dict[str, str]:
        """Of what it has deployed."""
        (outputs,) = self.directory.glob("*/cdk-outputs.json")
        return flatten(json.loads(outputs.read_text()))

    def charges(self, variant: Variant, order_id: str) -> int:
        """What the variant's provider says, past the page."""
        running = LocalDeployment("", self.outputs, self.directory)
        return len(Ledger(variant.of(running)).charges_of(order_id))


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The running page. Its last test ends it."""
    directory, port = tmp_path_factory.mktemp("console"), free_port()
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.console", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(directory)},
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
    url = f"http://127.0.0.1:{port}/"

    def answers() -> bool:
        assert process.poll() is None, (directory / "log").read_text()
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    try:
        wait_until(answers, deadline_s=UP_WITHIN_S, what="the page")
        yield Console(process, url, directory)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(30)


@pytest.fixture
def tab(console: Console, open_tab: Callable[[str], Tab]) -> Tab:
    """The page, live."""
    tab = open_tab(console.url)
    tab.is_live()
    return tab


def test_an_order_sent_once_is_paid_once_in_both(tab: Tab, console: Console) -> None:
    order_id = tab.send("send-one")
    for column, variant in ((HERE, THIS_REPO), (NAIVELY, NAIVE)):
        expect(tab.cell(order_id, column)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
        assert console.charges(variant, order_id) == 1
    expect(tab.page.locator(".summary").nth(HERE)).to_have_text("✓Nobody charged twice")


def test_an_order_sent_five_times_is_charged_once_here_and_oftener_there(tab: Tab, console: Console) -> None:
    order_id = tab.send("send-five-times")
    expect(tab.cell(order_id, HERE)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
    expect(tab.cell(order_id, NAIVELY)).to_contain_text(re.compile(r"✗ charged \d times"), timeout=WITHIN_MS)
    assert console.charges(THIS_REPO, order_id) == 1
    assert console.charges(NAIVE, order_id) > 1
    expect(tab.page.locator(".summary").nth(NAIVELY)).to_contain_text("charged more than once")
    expect(tab.page.locator(".summary").nth(HERE)).to_have_text("✓Nobody charged twice")
    expect(tab.news()).to_contain_text("Naive: order")

    tab.press("audit")
    number = tab.page.locator(f"#row-{order_id} button").inner_text().lower()
    findings = tab.page.locator("#findings > div")
    expect(findings.nth(NAIVELY)).to_contain_text(re.compile(rf"charged more than once: .*{number}"), timeout=WITHIN_MS)
    expect(findings.nth(HERE)).to_contain_text("✓ No findings.")
    expect(tab.page.locator("#h-report")).to_be_focused()


def test_a_payment_worker_killed_in_mid_charge_is_taken_over_and_charges_once(tab: Tab, console: Console) -> None:
    tab.press("kill")
    expect(tab.page.locator(".tag", has_text="armed: kill")).to_have_count(2, timeout=WITHIN_MS)
    order_id = tab.send("send-one")
    tab.page.locator(f"#row-{order_id} button").click()
    this_repo = tab.page.locator("#histories > div").nth(HERE)
    expect(this_repo.locator("li.death")).to_contain_text("is dead", timeout=WITHIN_MS)
    expect(tab.page.locator(".tag")).to_have_count(0, timeout=WITHIN_MS)
    expect(tab.cell(order_id, HERE)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
    assert console.charges(THIS_REPO, order_id) == 1
    for kind in ("sent", "fault", "takeover", "record"):
        expect(this_repo.locator(f"li.{kind}").first).to_be_visible()
    expect(this_repo.locator("li.effect", has_text="charged")).to_have_count(1)
    expect(this_repo.locator("li.end")).to_contain_text("paid, emailed")
    expect(tab.cell(order_id, NAIVELY)).to_contain_text("charged, not recorded", timeout=WITHIN_MS)


def test_ctrl_c_ends_the_page_and_the_local_aws_and_leaves_nothing(tab: Tab, console: Console) -> None:
    tab.excused = "ERR_CONNECTION_REFUSED"
    port = urlsplit(console.outputs["ApiUrl"]).port or 0
    assert not is_free(port)
    assert processes.find(f"{console.directory}/")  # the workers, at least
    console.process.send_signal(signal.SIGINT)
    assert console.process.wait(30) == 0, (console.directory / "log").read_text()
    assert is_free(port)
    assert processes.find(f"{console.directory}/") == []
    assert list(console.directory.glob("effectively-once-*")) == []
    expect(tab.page.locator("#link")).to_have_text("Disconnected")
