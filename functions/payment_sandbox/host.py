"""What the sandbox asks of the machine it runs on; tests put their own in its place."""

import os
import time


def now() -> float:
    """Epoch seconds."""
    return time.time()


def wait(seconds: float) -> None:
    """Keep the caller waiting."""
    time.sleep(seconds)


def die() -> None:
    """End the worker at once: no `finally`, no release, no answer.

    A function behind a URL can not cut its caller's connection. A worker that is gone is the nearest thing to a lost
    answer that both platforms honour: the effect stands, nothing runs after it, and the caller learns nothing of
    the outcome. On AWS and on MiniStack the front end then answers 502 with no Stripe error in it, and
    neither runs the invocation again (a function error of a synchronous invocation is not retried).
    """
    os._exit(1)
