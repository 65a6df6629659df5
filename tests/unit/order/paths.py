"""Every path through the order function."""

from tests.harness import samples
from tests.harness.every_path import DENIED, Paths


def drive(paths: Paths) -> None:
    """Placed, replayed, another order under its id, an id that is the API's, garbage, no permission, no time."""
    paths.at("orders")
    for order_id, quantity in (("ord_1", 1), ("ord_1", 1), ("ord_1", 2), ("api_of_nobody", 1)):
        paths.give(samples.requested(order_id, quantity=quantity))
    paths.give("{")
    paths.world.wire.plan("TransactWriteItems", DENIED)
    paths.give(samples.requested("ord_2"))
    paths.give(samples.requested("ord_2"), seconds=1)
    paths.redrive()
