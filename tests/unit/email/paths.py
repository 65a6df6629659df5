"""Every path through the email function."""

import msgspec

from tests.harness import samples
from tests.harness.every_path import PAST_THE_LEASE_S, Paths
from tests.harness.interceptor import answer_lost, meanwhile, refused


def drive(paths: Paths) -> None:
    """Whatever can become of a claim; and SES refuses, or does not say."""
    paths.at("emails")
    world = paths.world
    paths.claims("mail", paths.paid, lambda happens: world.wire.plan("SendEmail", meanwhile(happens)))
    paths.give(msgspec.structs.replace(paths.paid("mail_false"), total=1))
    paths.give(samples.decline(world, samples.requested("mail_declined")))
    for name, fault in {"refused": refused("MessageRejected"), "lost": answer_lost}.items():
        paid = paths.paid(f"mail_{name}")
        world.wire.plan("SendEmail", fault)
        paths.give(paid)
        world.clock.advance(PAST_THE_LEASE_S)
        paths.give(paid)
    paths.redrive()
