"""What SES wants of a person before the first receipt can go out."""

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from tools.deployed import is_absent


@dataclass(frozen=True)
class Identity:
    """An SES identity, an address or a domain.

    `configuration_set`: through which its mails go by default; `is_the_stacks`: the stack made it, and deletes it.
    """

    name: str
    configuration_set: str | None = None
    is_the_stacks: bool = False


def known_identity(session: Any, sender: str, stack: str) -> Identity | None:
    """The SES identity that the sender can use: the stack's own, else the address, else its domain.

    None if there is none: then the stack makes one.
    """
    own = _owns_identity(session.client("cloudformation"), stack, sender)
    ses = session.client("sesv2")
    for name in (sender,) if own else (sender, sender.rpartition("@")[2]):
        try:
            return Identity(name, ses.get_email_identity(EmailIdentity=name).get("ConfigurationSetName"), own)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NotFoundException":
                raise
    return None


def _owns_identity(cloudformation: Any, stack: str, sender: str) -> bool:
    try:
        found = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    except ClientError as error:
        if not is_absent(error):
            raise
        return False
    return any(
        resource["ResourceType"] == "AWS::SES::EmailIdentity"
        and resource.get("PhysicalResourceId") == sender  # not of another sender, with which it was deployed before
        and resource["ResourceStatus"] != "DELETE_COMPLETE"
        for resource in found
    )


def mail_advice(ses: Any, identity: str, region: str) -> str:
    """What is still to be done by hand, or that nothing is."""
    todo = [*_sender(ses, identity), *_sandbox(ses, region)]
    if not todo:
        return f"\nMail: {identity} is verified and SES is out of its sandbox. Nothing is left to do."
    return "\n".join(["\nMail, to be done by hand before receipts arrive:", *(f"  - {line}" for line in todo)])


def _sender(ses: Any, sender: str) -> list[str]:
    try:
        verified = ses.get_email_identity(EmailIdentity=sender)["VerifiedForSendingStatus"]
    except ClientError as error:
        return [f"whether {sender} is verified can not be told: {error}"]
    if verified:
        return []
    if "@" not in sender:
        return [f"publish the DNS records that SES shows for {sender}: until then every receipt is refused"]
    return [f"open the mail that AWS sent to {sender} and follow its link: until then every receipt is refused"]


def _sandbox(ses: Any, region: str) -> list[str]:
    try:
        if ses.get_account()["ProductionAccessEnabled"]:
            return []
    except ClientError as error:
        return [f"whether SES is in its sandbox can not be told: {error}"]
    verify = f"aws sesv2 create-email-identity --region {region} --email-identity buyer@example.com"
    return [
        f"SES is in its sandbox in {region} and mails verified addresses only. Verify each customer you try with:",
        f"  {verify}",
        "or ask for production access: SES console, Account dashboard, Request production access",
    ]
