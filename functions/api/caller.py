"""Who calls: an account, and a role or a user of it, as API Gateway's IAM authoriser found them."""

from functions.api.http import Request
from functions.api.problems import Problem

ROLE = "AROA"  # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-prefixes


def caller_of(request: Request) -> str:
    """The same for every session of a role: another pod of a service is the same caller.

    Raises Problem where there is none, which a route without the authoriser would let through.
    """
    account, user = request.iam.get("accountId"), request.iam.get("userId") or ""
    principal, _, _ = user.partition(":")
    if not (account and principal):
        raise Problem(403, "no-caller", "Forbidden", "The request was not signed with AWS credentials.")
    # A role's id is followed by the session. A federated user's is `account:name`, so there the name belongs to it.
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable
    caller = f"{account}/{principal if principal.startswith(ROLE) else user}"
    # All users of a Cognito identity pool share one role.
    identity = (request.iam.get("cognitoIdentity") or {}).get("identityId")
    return f"{caller}/{identity}" if identity else caller
