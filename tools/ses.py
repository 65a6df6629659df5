"""The SES identity that receipts are sent from."""

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from stacks.settings import identities_of
from tools.deployed import is_absent


@dataclass(frozen=True)
class Identity:
    """An SES identity: an address or a domain.

    `configuration_set` is the default of the identity. `is_from_stack`: the stack created it.
    """

    name: str
    verified: bool
    configuration_set: str | None = None
    is_from_stack: bool = False


def find_identity(session: Any, sender: str, stack: str) -> Identity | None:
    """Return the identity that the sender can use: the stack's own, else the address, else its domain or a parent.

    Returns None if there is none. The stack then creates one. Raises ClientError if AWS refuses.
    """
    from_stack = _is_from_stack(session.client("cloudformation"), stack, sender)
    ses = session.client("sesv2")
    for name in (sender,) if from_stack else identities_of(sender):
        try:
            found = ses.get_email_identity(EmailIdentity=name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NotFoundException":
                raise
        else:
            verified = bool(found.get("VerifiedForSendingStatus"))
            return Identity(name, verified, found.get("ConfigurationSetName"), from_stack)
    return None


def _is_from_stack(cloudformation: Any, stack: str, sender: str) -> bool:
    try:
        resources = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    except ClientError as error:
        if not is_absent(error):
            raise
        return False
    return any(
        resource["ResourceType"] == "AWS::SES::EmailIdentity"
        and resource.get("PhysicalResourceId") == sender  # an earlier deploy may have had another sender
        and resource["ResourceStatus"] not in ("DELETE_COMPLETE", "DELETE_SKIPPED")
        for resource in resources
    )
