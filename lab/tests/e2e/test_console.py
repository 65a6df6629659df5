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
from playwright.sync_api import ViewportSize, expect
from tools.local import processes
from tools.local.ministack import ROOT, free_port, is_free
from tools.local.observe import Ledger
from tools.local.running import Running
from tools.local.stack import flatten
from tools.progress import wait_until

from lab.demo.lanes import NAIVE, OURS, Lane
from lab.tests.e2e.tab import WITHIN_MS, Tab

UP_WITHIN_S = 240.0
NAIVELY, HERE = 0, 1  # columns
PHONE = ViewportSize(width=390, height=844)


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

    def charges(self, lane: Lane, order_id: str) -> int:
        """What the lane's provider says, past the page."""
        running = Running("", self.outputs, self.directory)
        return len(Ledger(lane.of(running)).charges_of(order_id))


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


def test_before_the_first_order_the_page_says_how_to_begin(tab: Tab) -> None:
    expect(tab.page.locator("#none")).to_contain_text("No order yet")
    expect(tab.page.locator(".verdict").nth(HERE)).to_have_text("Nothing sent yet")
    tab.press("audit")
    expect(tab.news()).to_contain_text("no order was sent yet")
    tab.press("replay")
    expect(tab.news()).to_contain_text("no message lies in a DLQ")


def test_an_order_sent_once_is_paid_once_in_both(tab: Tab, console: Console) -> None:
    order_id = tab.send("send-one")
    for column, lane in ((HERE, OURS), (NAIVELY, NAIVE)):
        expect(tab.cell(order_id, column)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
        assert console.charges(lane, order_id) == 1
    expect(tab.page.locator(".verdict").nth(HERE)).to_have_text("✓Nobody charged twice")


def test_an_order_sent_five_times_is_charged_once_here_and_oftener_there(tab: Tab, console: Console) -> None:
    order_id = tab.send("send-five-times")
    expect(tab.cell(order_id, HERE)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
    expect(tab.cell(order_id, NAIVELY)).to_contain_text(re.compile(r"✗ charged \d times"), timeout=WITHIN_MS)
    assert console.charges(OURS, order_id) == 1
    assert console.charges(NAIVE, order_id) > 1
    expect(tab.page.locator(".verdict").nth(NAIVELY)).to_contain_text("charged more than once")
    expect(tab.page.locator(".verdict").nth(HERE)).to_have_text("✓Nobody charged twice")
    expect(tab.news()).to_contain_text("Naive: order")

    tab.press("audit")
    number = tab.page.locator(f"#row-{order_id} button").inner_text().lower()
    findings = tab.page.locator("#findings > div")
    expect(findings.nth(NAIVELY)).to_contain_text(re.compile(rf"charged more than once: .*{number}"), timeout=WITHIN_MS)
    expect(findings.nth(HERE)).to_contain_text("✓ Nothing is wrong.")
    expect(tab.page.locator("#h-report")).to_be_focused()


def test_a_payment_worker_killed_in_mid_charge_is_taken_over_and_charges_once(tab: Tab, console: Console) -> None:
    tab.press("kill")
    expect(tab.page.locator(".tag", has_text="armed: kill")).to_have_count(2, timeout=WITHIN_MS)
    order_id = tab.send("send-one")
    tab.page.locator(f"#row-{order_id} button").click()
    ours = tab.page.locator("#tales > div").nth(HERE)
    expect(ours.locator("li.death")).to_contain_text("is dead", timeout=WITHIN_MS)
    expect(tab.page.locator(".tag")).to_have_count(0, timeout=WITHIN_MS)
    expect(tab.cell(order_id, HERE)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
    assert console.charges(OURS, order_id) == 1
    for kind in ("sent", "fault", "takeover", "record"):
        expect(ours.locator(f"li.{kind}").first).to_be_visible()
    expect(ours.locator("li.effect", has_text="charged")).to_have_count(1)
    expect(ours.locator("li.end")).to_contain_text("paid, mailed")
    expect(tab.cell(order_id, NAIVELY)).to_contain_text("charged, and no row says so", timeout=WITHIN_MS)


def test_the_provider_is_stopped_and_started_again(tab: Tab) -> None:
    tab.press("stop-provider")
    expect(tab.page.locator(".tag", has_text="provider stopped")).to_have_count(2, timeout=WITHIN_MS)
    tab.press("audit")
    expect(tab.news()).to_contain_text("Start it first")
    tab.press("start-provider")
    expect(tab.news()).to_contain_text("answers again")
    expect(tab.page.locator("[data-do=stop-provider]")).to_be_visible(timeout=WITHIN_MS)


def test_the_keyboard_alone_is_enough(tab: Tab) -> None:
    keyboard, focused = tab.page.keyboard, tab.page.locator(":focus")

    def tab_to(selector: str) -> None:
        for _ in range(40):
            keyboard.press("Tab")
            if focused.and_(tab.page.locator(selector)).count():
                return
        pytest.fail(f"the tab key does not come to {selector}")

    keyboard.press("Tab")
    expect(focused).to_have_text("Skip to the orders")
    tab_to("[data-do=send-one]")
    assert tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    before = tab.page.locator("tbody tr").count()
    keyboard.press("Enter")
    expect(tab.page.locator("tbody tr")).to_have_count(before + 1, timeout=WITHIN_MS)
    tab_to("tbody button")
    chosen = focused.inner_text()
    keyboard.press("Enter")
    expect(focused).to_have_text(f"{chosen}, as it happens")
    expect(tab.page.locator("#tales li").first).to_be_visible()
    keyboard.press("Escape")
    expect(focused).to_have_text(chosen)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_cut_off_and_text_stands_out(tab: Tab, scheme: str, tmp_path: Path) -> None:
    tab.page.set_viewport_size(PHONE)
    tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    tab.page.locator("tbody button").last.click()
    expect(tab.page.locator("#tales li.end").first).to_be_visible()
    assert tab.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert tab.page.evaluate(CUT_OFF) == []
    dim = {text: ratio for text, ratio in tab.page.evaluate(CONTRASTS).items() if ratio < 4.5}  # WCAG 2.2, 1.4.3
    assert dim == {}
    picture = tmp_path / f"{scheme}.png"
    tab.page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 10_000


# What is wider than the window and not meant to be.
CUT_OFF = """() => [...document.querySelectorAll('body *:not(.skip, .hidden)')]
  .filter((el) => el.checkVisibility() && el.getBoundingClientRect().right > innerWidth + 1)
  .map((el) => el.outerHTML.slice(0, 80))"""

# The contrast of each text with what is behind it: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
CONTRASTS = """() => {
  const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = rgb(colour).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (el) => {
    const [, , , alpha = 1] = rgb(getComputedStyle(el).backgroundColor);
    return alpha || !el.parentElement ? getComputedStyle(el).backgroundColor : behind(el.parentElement);
  };
  const found = {};
  for (const el of document.querySelectorAll('body *')) {
    if (!el.checkVisibility() || ![...el.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const [a, b] = [light(getComputedStyle(el).color), light(behind(el))].sort((x, y) => y - x);
    found[`${el.tagName}.${el.className} ${el.textContent.trim().slice(0, 30)}`] = (a + 0.05) / (b + 0.05);
  }
  return found;
}"""


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
