"""SES: one request an email, and what each answer says about it.

https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html
"""

import re
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from functions.email.content import Email
from shared.idempotency import NotDone, Permanent, StepError, Unknown

if TYPE_CHECKING:
    from mypy_boto3_sesv2 import SESV2Client

SUPPRESSED = "suppressed"  # in place of the email's id

# Permanent refusals, by name. Every other refusal is temporary or can be repaired: out of quota, sending paused,
# account suspended, access denied, …
_REFUSED = {
    "MessageRejected": "mail_rejected",
    "MailFromDomainNotVerifiedException": "address_not_verified",
    "BadRequestException": "mail_invalid",
}
_THROTTLED = {
    "TooManyRequestsException",
    "ThrottlingException",
    "Throttling",
}  # SES did not accept the email, with any HTTP status


def send_email(ses: "SESV2Client", email: Email, *, sender: str, to: str, effect_key: str) -> str:
    """Send one email. Returns its id, or SUPPRESSED if SES never delivers to this address.

    SES usually accepts an email to a suppressed address, gives it an id and drops it. A bounce event
    (`OnAccountSuppressionList`) reports the drop. The drop is no reason to send the email again.
    https://docs.aws.amazon.com/ses/latest/dg/sending-email-suppression-list.html

    Raises NotDone (it is known that nothing was sent), Permanent, or Unknown (the email may have been sent).
    """
    try:
        answer = ses.send_email(
            FromEmailAddress=sender,
            Destination={"ToAddresses": [to]},
            Content={
                "Simple": {
                    "Subject": {"Data": email.subject, "Charset": "UTF-8"},
                    "Body": {
                        "Text": {"Data": email.text, "Charset": "UTF-8"},
                        "Html": {"Data": email.html, "Charset": "UTF-8"},
                    },
                }
            },
            EmailTags=[{"Name": "effect_key", "Value": tag_value(effect_key)}],
        )
    except ClientError as error:
        if _is_suppressed(error):
            return SUPPRESSED
        raise _to_step_error(error) from error
    except (ConnectTimeoutError, EndpointConnectionError) as error:
        raise NotDone(type(error).__name__) from error
    except BotoCoreError as error:
        raise Unknown(type(error).__name__) from error
    return answer["MessageId"]


def tag_value(key: str) -> str:
    """Convert a key into a tag value that SES accepts. No two keys collide: order ids have no replaced character.

    https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageTag.html
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", key)


def _to_step_error(error: ClientError) -> StepError:
    """Convert an error of SES, without its message, which names the address."""
    code = error.response["Error"]["Code"]
    if code in _REFUSED:
        unverified = "not verified" in error.response["Error"]["Message"].lower()
        return Permanent("address_not_verified" if unverified else _REFUSED[code], code)
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500 and code not in _THROTTLED:
        return Unknown(code)  # SES may have failed after it accepted the email
    return NotDone(code)


def _is_suppressed(error: ClientError) -> bool:
    """Return whether SES refused a suppressed address, as it did in the past. Compatible services may still do so."""
    refusal = error.response["Error"]
    return (
        refusal["Code"] == "MessageRejected" and re.search("suppress|blacklist", refusal["Message"], re.I) is not None
    )
