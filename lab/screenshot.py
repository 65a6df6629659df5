"""`make screenshot`: start the console, send orders, kill a payment worker, and write docs/images/console.png.

Needs Chromium: `apt-get install chromium` on Debian. Exit status 1 if the page does not show the expected outcome.
"""

import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

from playwright.sync_api import Locator, Page, expect, sync_playwright
from tools.local.ministack import ROOT, free_port
from tools.progress import wait_until

PICTURE = ROOT / "docs" / "images" / "console.png"
WIDTH_PX, HEIGHT_PX, MAX_BYTES = 1200, 800, 200_000
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
UP_WITHIN_S = 400.0
WITHIN_MS = 180_000
THIS_REPO, NAIVE = 1, 0  # columns of the page


def main() -> int:
    """Take the picture. Returns the exit status."""
    chromium = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if chromium is None:
        sys.stderr.write(f"Install one of {', '.join(CHROMIUMS)}. On Debian: apt-get install chromium\n")
        return 1
    port = free_port()
    console = subprocess.Popen([sys.executable, "-m", "lab.console", "--port", str(port)], cwd=ROOT)
    try:
        wait_until(lambda: _answers(console, port), deadline_s=UP_WITHIN_S, what="the page", every_s=1.0)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH_PX, "height": HEIGHT_PX}, reduced_motion="reduce")
            page.goto(f"http://127.0.0.1:{port}/")
            _show_outcomes(page)
            PICTURE.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=PICTURE)
            browser.close()
    finally:
        console.send_signal(signal.SIGINT)
        console.wait(60)
    size = PICTURE.stat().st_size
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {size:,} bytes\n")
    return 0 if size <= MAX_BYTES else 1


def _answers(console: subprocess.Popen[bytes], port: int) -> bool:
    if console.poll() is not None:
        raise SystemExit("the console ended: see its output above")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _show_outcomes(page: Page) -> None:
    """Send orders that end differently in the two pipelines, and open the history of the last one."""
    rows = page.locator("tbody tr")

    def send(action: str) -> str:
        before = rows.count()
        page.locator(f"[data-do={action}]").click()
        expect(rows).to_have_count(before + 1, timeout=WITHIN_MS)
        return rows.first.get_attribute("id") or ""

    def cell(row: str, column: int) -> Locator:
        return page.locator(f"#{row} td").nth(column)

    sent = [send("send-one"), send("send-five-times"), send("send-one"), send("send-five-times")]
    for row in sent:
        expect(cell(row, THIS_REPO)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
    expect(cell(sent[1], NAIVE)).to_contain_text(re.compile(r"charged \d times"), timeout=WITHIN_MS)
    page.locator("[data-do=kill]").click()
    expect(page.locator(".tag", has_text="armed: kill")).to_have_count(2, timeout=WITHIN_MS)
    last = send("send-one")
    page.locator(f"#{last} button").click()
    expect(cell(last, THIS_REPO)).to_have_text("✓ paid, charged once", timeout=WITHIN_MS)
    expect(cell(last, NAIVE)).to_contain_text("charged, not recorded", timeout=WITHIN_MS)
    page.evaluate("scrollTo(0, 0)")


if __name__ == "__main__":
    sys.exit(main())
