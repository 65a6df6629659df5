"""AWS requests inside a step that have no effect anybody could notice twice: reads, overwrites, a claim on a row."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from shared.idempotency.errors import NotDone


@contextmanager
def harmless(what: str) -> Iterator[None]:
    """Whatever becomes of them, the step was not done: raises NotDone. `what` goes into the log, AWS's words do not."""
    try:
        yield
    except ClientError as error:
        raise NotDone(f"{what}: {error.response['Error']['Code']}") from error
    except BotoCoreError as error:
        raise NotDone(f"{what}: {type(error).__name__}") from error
