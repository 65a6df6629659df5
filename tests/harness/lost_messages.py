"""What a queue can do to a batch."""

import json
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from tests.harness.interceptor import Apply, Fault

Entry = dict[str, Any]


def some_refused(which: Callable[[Entry], bool], *, code: str = "InternalError", sender_fault: bool = False) -> Fault:
    """SendMessageBatch takes all entries but these; `which` gets an entry of the request."""

    def fault(request: AWSPreparedRequest, apply: Apply) -> AWSResponse:
        asked = body_of(request)
        refused = [entry for entry in asked["Entries"] if which(entry)]
        taken = [entry for entry in asked["Entries"] if not which(entry)]
        successful = []
        if taken:
            request.body = json.dumps({**asked, "Entries": taken}).encode()
            successful = json.loads(apply().content)["Successful"]
        failed = [{"Id": entry["Id"], "Code": code, "SenderFault": sender_fault} for entry in refused]
        return answer(request, {"Successful": successful, "Failed": failed})

    return fault


def answer(request: AWSPreparedRequest, content: dict[str, Any]) -> AWSResponse:
    """A good answer of a service that speaks JSON."""
    headers = HTTPHeaders.from_dict({"Content-Type": "application/x-amz-json-1.0"})
    response = AWSResponse(request.url, 200, headers, None)
    response._content = json.dumps(content).encode()  # type: ignore[attr-defined]
    return response


def body_of(request: AWSPreparedRequest) -> Any:
    """What a request asks, read from JSON."""
    body = request.body
    assert isinstance(body, bytes)
    return json.loads(body)
