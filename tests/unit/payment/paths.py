"""Every path through the payment function."""

import msgspec

from functions.payment.provider import KEY_AGE_S
from tests.harness import provider_connection
from tests.harness.every_path import DENIED, PAST_THE_LEASE_S, Paths


def drive(paths: Paths) -> None:
    """Whatever can become of a claim; and the provider is down, vague, refuses, misbehaves, wants another key."""
    paths.at("payments")
    payments, clock = paths.pipeline.payments, paths.world.clock
    paths.claims(
        "pay",
        payments.order,
        lambda happens: payments.connection.plan("confirm", provider_connection.meanwhile(happens)),
    )
    paths.give(msgspec.structs.replace(payments.order("pay_false"), total=1))
    too_little = provider_connection.refuses(400, "invalid_request_error", code="amount_too_small", param="amount")
    not_enabled = provider_connection.refuses(400, "invalid_request_error", param="currency")
    for name, fault in {
        "not_enabled": not_enabled,
        "down": provider_connection.refuses(500),
        "lost": provider_connection.cut_after,
        "too_little": too_little,
    }.items():
        placed = payments.order(f"pay_{name}")
        payments.connection.plan("confirm", fault)
        paths.give(placed)
        clock.advance(PAST_THE_LEASE_S)
        paths.give(placed)
    for card in ("slow", "error_before", "error_after", "drop"):
        paths.give(payments.order(f"pay_{card}", method=f"pm_sandbox_{card}"))
    placed = payments.order("pay_rotated")
    payments.connection.plan("create", provider_connection.refuses(401, "invalid_request_error"))
    paths.give(placed)
    clock.advance(KEY_AGE_S)
    paths.world.wire.plan("GetSecretValue", DENIED)
    paths.give(placed)
    paths.give(placed)
    paths.redrive()
