"""The SES identity that receipts are sent from, and what remains to do by hand before the first receipt."""

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from tools.deployed import is_absent


@dataclass(frozen=True)
class Identity:
    """An SES identity: an address or a domain.

    `configuration_set` is the default of the identity. `is_from_stack`: the stack created it, and deletes it.
    """

    name: str
    configuration_set: str | None = None
    is_from_stack: bool = False


def find_identity(session: Any, sender: str, stack: str) -> Identity | None:
    """Return the identity that the sender can use: the stack's own, else the address, else its domain.

    Returns None if there is none. The stack then creates one.
    """
    from_stack = _is_from_stack(session.client("cloudformation"), stack, sender)
    ses = session.client("sesv2")
    for name in (sender,) if from_stack else (sender, sender.rpartition("@")[2]):
        try:
            found = ses.get_email_identity(EmailIdentity=name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NotFoundException":
                raise
        else:
            return Identity(name, found.get("ConfigurationSetName"), from_stack)
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
        and resource["ResourceStatus"] != "DELETE_COMPLETE"
        for resource in resources
    )


def email_advice(ses: Any, identity: str, region: str) -> str:
    """Return what remains to do by hand before receipts arrive, as text."""
    todo = [*_unverified(ses, identity), *_ses_sandbox(ses, region)]
    if not todo:
        return f"\nEmail: {identity} is verified and SES is out of its sandbox. Nothing remains to do."
    return "\n".join(["\nEmail: do this by hand before receipts can arrive:", *(f"  - {line}" for line in todo)])


def _unverified(ses: Any, identity: str) -> list[str]:
    try:
        verified = ses.get_email_identity(EmailIdentity=identity)["VerifiedForSendingStatus"]
    except ClientError as error:
        return [f"cannot read whether {identity} is verified: {error}"]
    if verified:
        return []
    if "@" not in identity:
        return [f"publish the DNS records that SES shows for {identity}; until then SES refuses every receipt"]
    return [f"follow the link in the email that AWS sent to {identity}; until then SES refuses every receipt"]


def _ses_sandbox(ses: Any, region: str) -> list[str]:
    try:
        if ses.get_account()["ProductionAccessEnabled"]:
            return []
    except ClientError as error:
        return [f"cannot read whether SES is in its sandbox: {error}"]
    return [
        f"SES is in its sandbox in {region} and sends to verified addresses only. Verify each customer of your tests:",
        f"  aws sesv2 create-email-identity --region {region} --email-identity buyer@example.com",
        "or request production access: SES console, Account dashboard, Request production access",
    ]
