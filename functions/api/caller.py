"""Who calls: an account, and a role or a user of it, as API Gateway's IAM authoriser found them."""

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.problems import Problem

ROLE = "AROA"  # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-prefixes


def caller_of(event: APIGatewayProxyEventV2) -> str:
    """The same for every session of a role: another pod of a service is the same caller.

    Raises Problem where there is none, which a route without the authoriser would let through.
    """
    iam = event.request_context.authorizer.iam
    principal, _, _ = iam.user_id.partition(":")
    if not (iam.account_id and principal):
        raise Problem(403, "no-caller", "Forbidden", "The request was not signed with AWS credentials.")
    # A role's id is followed by the session. A federated user's is `account:name`, so there the name belongs to it.
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable
    caller = f"{iam.account_id}/{principal if principal.startswith(ROLE) else iam.user_id}"
    # All users of a Cognito identity pool share one role.
    return f"{caller}/{iam.cognito_identity_id}" if iam.cognito_identity_id else caller
