"""What the page has sent."""

from lab.console.book import Book


def test_orders_are_numbered_and_each_has_a_customer_of_its_own() -> None:
    book = Book()
    first, second = book.open(1), book.open(5)
    assert [entry.number for entry in book.entries()] == [1, 2]
    assert first.order_id != second.order_id
    assert first.expected.email != second.expected.email
    assert second.copies == 5


def test_what_is_expected_follows_from_what_was_ordered() -> None:
    book = Book()
    pays, declined = book.open(1), book.open(1, pays=False)
    assert pays.expected.pays
    assert not declined.expected.pays
    assert pays.expected.amount == 2 * pays.data["items"][0]["unit_price"]


def test_only_the_latest_are_kept_but_all_are_counted() -> None:
    book = Book(kept=3)
    for _ in range(10):
        book.open(1)
    assert [entry.number for entry in book.entries()] == [8, 9, 10]
    assert book.total == 10


def test_two_runs_never_share_an_order_id() -> None:
    assert Book().open(1).order_id != Book().open(1).order_id
