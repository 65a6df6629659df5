"""The page in a browser's tab."""

import re
from dataclasses import dataclass, field

from playwright.sync_api import Locator, Page, expect

WITHIN_MS = 120_000  # a killed worker's message is back after one timeout of its function, and workers may be cold


@dataclass
class Tab:
    """A page that must ask nobody but its own server, and log no error but those in `excused`."""

    page: Page
    errors: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    excused: str | None = None

    def is_live(self) -> None:
        """Wait until it shows both variants."""
        expect(self.page.locator("#link")).to_have_text("Live")
        expect(self.page.locator(".variant")).to_have_count(2)

    def is_clean(self, host: str) -> None:
        """Fail if it asked anybody but `host`, or logged an error."""
        assert self.asked <= {host}
        assert [error for error in self.errors if not (self.excused and re.search(self.excused, error))] == []

    def press(self, name: str) -> None:
        self.page.locator(f"[data-do={name}]").click()

    def send(self, name: str) -> str:
        """Press a button that sends one order; the order's id, once it is in the list."""
        rows = self.page.locator("tbody tr")
        before = rows.count()
        self.press(name)
        expect(rows).to_have_count(before + 1, timeout=WITHIN_MS)
        return (rows.first.get_attribute("id") or "").removeprefix("row-")

    def cell(self, order_id: str, column: int) -> Locator:
        return self.page.locator(f"#row-{order_id} td").nth(column)

    def news(self) -> Locator:
        return self.page.locator("#news")
