"""`make order`: post one order to the API of a stage, wait until the order is final, and print its story.

Exit status 0: the order is final. 1: it is not final in time. 2: it was not accepted, or the stage cannot be read.
"""

import argparse
import secrets
import sys

import stripe
from botocore.exceptions import BotoCoreError, ClientError

from tools.account import Stop
from tools.domain import MAILED, NotAccepted, an_order, api_client, describe_state, sample_email
from tools.operate import printing
from tools.operate.deployment import Deployment, find
from tools.operate.trace import trace
from tools.progress import Steps, stderr, wait_until
from tools.tables import Tables

DEADLINE_S = 180.0  # enough for cold starts, and for the redelivery after a worker died


def order(deployment: Deployment, method: str, email: str, amount: int, deadline_s: float = DEADLINE_S) -> int:
    """Post an order of `amount` minor units, wait, print. Returns the exit status.

    Raises Stop for prod, NotAccepted if the API refuses the order, and TimeoutError if the API does not answer.
    """
    if deployment.stage == "prod":
        raise Stop("This would place a real order. `make order` is for stages with the payment sandbox.")
    key = f"make-order-{secrets.token_hex(8)}"
    new = an_order(email or sample_email(key), method, unit_price=amount, quantity=1)
    with Steps(stderr) as steps:
        with steps.step("posting the order"):
            order_id = str(api_client(deployment).place_until_accepted(new, key).body["order_id"])
        print(order_id, flush=True)
        is_final = _wait(deployment.tables(), order_id, steps, deadline_s)
        with steps.step("reading its story"):
            story = trace(deployment, order_id)
    printing.trace(story)
    if is_final:
        return 0
    stage = "" if deployment.stage == "local" else f" STAGE={deployment.stage}"
    stderr.print(
        f"\n{order_id} is not final after {deadline_s:.0f} s. The story above shows its last step. Look at "
        f"`make dlq{stage}` and `make audit{stage}`, and later again at `make trace ORDER={order_id}{stage}`.",
        style="red",
        markup=False,
    )
    return 1


def _wait(tables: Tables, order_id: str, steps: Steps, deadline_s: float) -> bool:
    """Wait until the order is final: paid or declined, and the email was sent. Returns whether it is in time."""
    with steps.step("waiting until it is final") as tell:

        def is_final() -> bool:
            state = describe_state(tables.order(order_id))
            tell(detail=state)
            return state.endswith(MAILED)

        try:
            return wait_until(is_final, deadline_s=deadline_s, what=f"{order_id} to be final", every_s=0.3)
        except TimeoutError:
            return False


def _amount(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 99_999_999:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount in minor units, such as 2500 for 25.00 EUR")
    return int(text)


def main() -> int:
    """Run `make order`. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.order", description=__doc__)
    parser.add_argument("--stage", choices=("local", "sandbox", "prod"), default="local")
    parser.add_argument("--method", default="pm_card_visa", help="a payment method of the payment sandbox")
    parser.add_argument("--email", default="", help="the receipt's address (default: SES's mailbox simulator)")
    parser.add_argument("--amount", type=_amount, default=2500, help="the total in minor units of EUR")
    arguments = parser.parse_args()
    try:
        return order(find(arguments.stage), arguments.method, arguments.email, arguments.amount)
    except (Stop, NotAccepted, TimeoutError, ClientError, BotoCoreError, stripe.StripeError) as error:
        stderr.print(f"\n{error}", style="red", markup=False)
    except KeyboardInterrupt:
        stderr.print("\nInterrupted. An order that was posted continues.", style="red")
    return 2


if __name__ == "__main__":
    sys.exit(main())
