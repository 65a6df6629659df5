"""How long a failed message waits, and how many receives that makes. Pure; used at run time and by the stacks."""

import random


def delay_bounds(receive_count: int, base_s: int, cap_s: int) -> tuple[int, int]:
    """Least and most seconds to wait after the receive with this number (1 = the first).

    Exponential, with half of it jitter, so that the least is known: what an outage is measured against.
    https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/
    """
    # Past 2**20 the cap has long been reached; the bound keeps the power small for any receive count.
    high = min(cap_s, base_s * 2 ** min(max(receive_count, 1) - 1, 20))
    return (high + 1) // 2, high


def delay_s(receive_count: int, base_s: int, cap_s: int, rng: random.Random) -> int:
    """Seconds to wait after the receive with this number."""
    return rng.randint(*delay_bounds(receive_count, base_s, cap_s))


def receives_to_ride_out(outage_s: int, base_s: int, cap_s: int) -> int:
    """Least maxReceiveCount with which a message outlives an outage of this many seconds, whatever the jitter.

    Raises ValueError for a base or cap of less than a second: such a message would burn its receives at once.
    """
    if base_s < 1 or cap_s < base_s:
        raise ValueError(f"back-off of base {base_s} s and cap {cap_s} s: need 1 <= base <= cap")
    receives, waited = 1, 0
    while waited < outage_s:
        waited += delay_bounds(receives, base_s, cap_s)[0]
        receives += 1
    return receives
