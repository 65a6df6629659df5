"""Bearer keys: https://docs.stripe.com/api/authentication"""

import hmac
import os
from functools import cache

from functions.payment_sandbox.errors import Unauthorised
from shared.idempotency import client


def authorise(authorization: str) -> None:
    """Raise Unauthorised unless the header has the API key; any key will do where no secret is configured (`local`)."""
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthorised("You did not provide an API key. Send it as a bearer token.")
    arn = os.environ.get("API_KEY_SECRET_ARN")
    if arn and not hmac.compare_digest(key.strip().encode(), _secret(arn).encode()):
        raise Unauthorised("Invalid API key.")


@cache
def _secret(arn: str) -> str:
    """The API key, fetched once for the life of the worker."""
    value: str = client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
    return value
