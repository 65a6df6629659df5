"""Every path through the payment function."""

import msgspec

from tests.harness import line
from tests.harness.every_path import DENIED, PAST_THE_LEASE_S, Paths


def drive(paths: Paths) -> None:
    """Whatever can become of a claim; and the provider is down, vague, refuses, misbehaves, wants another key."""
    paths.at("payments")
    shop, clock = paths.pipeline.shop, paths.world.clock
    paths.claims("pay", shop.order, lambda happens: shop.line.plan("confirm", line.meanwhile(happens)))
    paths.give(msgspec.structs.replace(shop.order("pay_false"), total=1))
    too_little = line.refuses(400, "invalid_request_error", code="amount_too_small", param="amount")
    for name, fault in {"down": line.refuses(500), "lost": line.cut_after, "too_little": too_little}.items():
        placed = shop.order(f"pay_{name}")
        shop.line.plan("confirm", fault)
        paths.give(placed)
        clock.advance(PAST_THE_LEASE_S)
        paths.give(placed)
    for card in ("slow", "error_before", "error_after", "drop"):
        paths.give(shop.order(f"pay_{card}", method=f"pm_sandbox_{card}"))
    placed = shop.order("pay_rotated")
    shop.line.plan("create", line.refuses(401, "invalid_request_error"))
    paths.give(placed)
    paths.world.wire.plan("GetSecretValue", DENIED)
    paths.give(placed)
    paths.give(placed)
    paths.redrive()
