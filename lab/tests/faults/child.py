"""One worker: hands the event on its standard input to the entry point, as Lambda's runtime does. May be killed."""

import json
import sys

from tests.harness.http_lambda import Context

from lab.faults.wrapped_handler import handler

print(json.dumps(handler(json.load(sys.stdin), Context(remaining_ms=120_000))))  # noqa: T201 - its answer
