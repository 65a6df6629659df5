"""What SES wants of a person before the first receipt can go out."""

from typing import Any

from botocore.exceptions import ClientError


def mail_advice(ses: Any, sender: str, region: str) -> str:
    """What is still to be done by hand, or that nothing is."""
    todo = [*_sender(ses, sender), *_sandbox(ses, region)]
    if not todo:
        return f"\nMail: {sender} is verified and SES is out of its sandbox. Nothing is left to do."
    return "\n".join(["\nMail, to be done by hand before receipts arrive:", *(f"  - {line}" for line in todo)])


def _sender(ses: Any, sender: str) -> list[str]:
    try:
        verified = ses.get_email_identity(EmailIdentity=sender)["VerifiedForSendingStatus"]
    except ClientError as error:
        return [f"whether {sender} is verified can not be told: {error}"]
    if verified:
        return []
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
