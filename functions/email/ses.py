"""SES: one request a mail, and what each of its answers says of it.

https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html
"""

import re
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from functions.email.mails import Mail
from shared.idempotency import NotDone, Permanent, StepError, Unknown

if TYPE_CHECKING:
    from mypy_boto3_sesv2 import SESV2Client

SUPPRESSED = "suppressed"  # stands for the mail's id

# Refused for good, by name. All else that SES answers is mended by waiting or by people: out of quota, sending paused,
# account suspended, access denied, …
_REFUSED = {
    "MessageRejected": "mail_rejected",
    "MailFromDomainNotVerifiedException": "address_not_verified",
    "BadRequestException": "mail_invalid",
}
_THROTTLED = {"TooManyRequestsException", "ThrottlingException", "Throttling"}  # not taken, whatever the status


def send_mail(ses: "SESV2Client", mail: Mail, *, sender: str, to: str, effect_key: str) -> str:
    """Send one mail and answer its id, or SUPPRESSED: SES will not deliver to this address, ever so often asked.

    As a rule SES accepts a mail to a suppressed address, gives it an id and drops it; that shows only later, in a
    bounce event (`OnAccountSuppressionList`), which is not a reason to send again either.
    https://docs.aws.amazon.com/ses/latest/dg/sending-email-suppression-list.html

    Raises NotDone (known not sent), Permanent (refused for good), Unknown (it may have been sent).
    """
    try:
        answer = ses.send_email(
            FromEmailAddress=sender,
            Destination={"ToAddresses": [to]},
            Content={
                "Simple": {
                    "Subject": {"Data": mail.subject, "Charset": "UTF-8"},
                    "Body": {
                        "Text": {"Data": mail.text, "Charset": "UTF-8"},
                        "Html": {"Data": mail.html, "Charset": "UTF-8"},
                    },
                }
            },
            EmailTags=[{"Name": "effect_key", "Value": tag_value(effect_key)}],
        )
    except ClientError as error:
        if _is_suppressed(error):
            return SUPPRESSED
        raise _read(error) from error
    except (ConnectTimeoutError, EndpointConnectionError) as error:
        raise NotDone(type(error).__name__) from error
    except BotoCoreError as error:
        raise Unknown(type(error).__name__) from error
    return answer["MessageId"]


def tag_value(key: str) -> str:
    """The key as SES takes it, one to one: order ids have none of the characters that are replaced.

    https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageTag.html
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", key)


def _read(error: ClientError) -> StepError:
    """What an error says of the mail. Never with its message, which names the address."""
    code = error.response["Error"]["Code"]
    if code in _REFUSED:
        unverified = "not verified" in error.response["Error"]["Message"].lower()
        return Permanent("address_not_verified" if unverified else _REFUSED[code], code)
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500 and code not in _THROTTLED:
        return Unknown(code)  # it may have failed after it had taken the mail
    return NotDone(code)


def _is_suppressed(error: ClientError) -> bool:
    """SES used to refuse such addresses, with these words; what speaks its protocol may still."""
    said = error.response["Error"]
    return said["Code"] == "MessageRejected" and re.search("suppress|blacklist", said["Message"], re.I) is not None
