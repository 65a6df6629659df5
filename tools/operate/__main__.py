"""The operator's commands (`make dlq`, `make audit`, ...): `python -m tools.operate <command> --stage <stage>`.

Exit status 0: nothing is wrong. 1: something is wrong (a message is parked or could not be moved, the audit found
something, the order or the record is unknown). 2: the command failed, was interrupted, or consent was not given.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import stripe
from botocore.exceptions import BotoCoreError, ClientError

from shared.orders import format_amount
from tools.account import Stop
from tools.domain import ORDER_ID
from tools.operate import audit, commands, dlq, printing, redrive, settle, trace
from tools.operate.deployment import Deployment, find
from tools.progress import Steps, stderr

FAILED = 2
QUEUE_HELP = "a queue by its outputs: orders for OrdersQueueUrl and OrdersDlqUrl"


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit status."""
    arguments = _parser().parse_args(argv)
    try:
        deployment = find(arguments.stage)
        stderr.print(f"{arguments.command}: {deployment.where}", style="dim", markup=False)
        command: Callable[[Deployment, argparse.Namespace], int] = arguments.run
        return command(deployment, arguments)
    except (Stop, ClientError, BotoCoreError, stripe.StripeError) as error:
        stderr.print(f"\n{error}", style="red", markup=False)
    except KeyboardInterrupt:
        stderr.print("\nInterrupted. It is safe to run it again.", style="red")
    return FAILED


def _dlq(deployment: Deployment, arguments: argparse.Namespace) -> int:
    with Steps(stderr) as steps, steps.step("reading the DLQs"):
        dlqs = dlq.look_everywhere(deployment)
    report = {"queues": [contents.report for contents in dlqs]}
    _print(deployment, arguments, lambda: printing.dlq(dlqs), report)
    return int(not all(contents.is_empty for contents in dlqs))


def _redrive(deployment: Deployment, arguments: argparse.Namespace) -> int:
    selection = redrive.Selection(arguments.queue, arguments.all, arguments.reason, arguments.max, arguments.dry_run)
    with Steps(stderr) as steps, steps.step(f"redriving {selection.queue}") as tell:
        result = redrive.redrive(deployment, selection, lambda moved, total: tell(done=moved, total=total))
    report = {"queue": selection.queue, "dry_run": selection.dry_run, **vars(result)}
    _print(deployment, arguments, lambda: printing.redrive(selection, result), report)
    return int(not result.succeeded)


def _audit(deployment: Deployment, arguments: argparse.Namespace) -> int:
    result = audit.Auditor(deployment, Steps(stderr), arguments.age).run(arguments.repair)
    _print(deployment, arguments, lambda: printing.audit(result), result.report)
    return int(bool(result.wrong))


def _trace(deployment: Deployment, arguments: argparse.Namespace) -> int:
    with Steps(stderr) as steps, steps.step(f"reading about {arguments.order}"):
        story = trace.trace(deployment, arguments.order)
    _print(deployment, arguments, lambda: printing.trace(story), asdict(story))
    return int(not story.is_known)


def _switch(deployment: Deployment, arguments: argparse.Namespace) -> int:
    on = arguments.command == "resume"
    with Steps(stderr) as steps, steps.step(f"{'resuming' if on else 'pausing'} {arguments.queue}"):
        result = commands.switch(deployment, arguments.queue, on=on)
    _print(deployment, arguments, lambda: printing.switched(result), asdict(result))
    return 0


def _forget(deployment: Deployment, arguments: argparse.Namespace) -> int:
    key, image = arguments.key, commands.find_record(deployment, arguments.key)
    shown = commands.visible_attributes(image or {})
    if image is not None:
        commands.require_forgettable(image, second_mail=arguments.second_mail)
        printing.record(shown)
        question = "This record will be deleted. Its step runs again when the event arrives again."
        commands.consent(key, question, given=arguments.yes)
        commands.forget(deployment, image)
    report = {"key": key, "forgotten": image is not None, "record": shown}
    _print(deployment, arguments, lambda: printing.forgotten(key, image), report)
    return int(image is None)


def _discard(deployment: Deployment, arguments: argparse.Namespace) -> int:
    queue, reason = arguments.queue, arguments.reason
    ids = commands.discardable(deployment, queue, reason)
    if ids:
        file = commands.discard_file(deployment)
        question = (
            f"{len(ids)} messages will be moved from the DLQ of {queue} to {file}.\nThat file holds customers' data."
        )
        commands.consent(f"{queue} {reason}", question, given=arguments.yes)
    result = commands.discard(deployment, queue, reason, ids)
    _print(deployment, arguments, lambda: printing.discarded(result), asdict(result))
    return 0


def _settle(deployment: Deployment, arguments: argparse.Namespace) -> int:
    order_id, reason = arguments.order, arguments.reason
    row = settle.placed_order(deployment, order_id)
    question = (
        f"Order {order_id} over {format_amount(row.total, row.currency)}, placed at {row.placed_at}, will be declined "
        f"for good with reason {reason}.\nIts intent ({row.intent_id or 'none'}) will be cancelled. "
        "The customer gets an email."
    )
    commands.consent(order_id, question, given=arguments.yes)
    with Steps(stderr) as steps, steps.step(f"settling {order_id}"):
        result = settle.settle(deployment, order_id, reason)
    _print(deployment, arguments, lambda: printing.settled(result), asdict(result))
    return 0


def _recover(deployment: Deployment, arguments: argparse.Namespace) -> int:
    with Steps(stderr) as steps, steps.step(f"rows of {arguments.copy}") as tell:
        counts = commands.recover(deployment, arguments.copy, lambda rows: tell(done=rows))
    names = ("put_back", "known_to_be_charged", "there_already")
    report = {"from": arguments.copy, **{name: counts[name] for name in names}}
    _print(deployment, arguments, lambda: printing.recovered(counts), report)
    return 0


def _print(
    deployment: Deployment, arguments: argparse.Namespace, for_people: Callable[[], None], report: Mapping[str, Any]
) -> None:
    if arguments.json:
        print(json.dumps({"stage": deployment.stage, **report}, indent=2))
    else:
        for_people()


def _order_id(text: str) -> str:
    if not ORDER_ID.fullmatch(text):
        raise argparse.ArgumentTypeError("this is not an order id. ORDER=ord_1")
    return text


def _reason(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", text):
        raise argparse.ArgumentTypeError("a reason is in snake case. REASON=customer_unreachable")
    return text


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.operate", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--stage", choices=("local", "sandbox", "prod"), default="local")
    common.add_argument("--json", action="store_true", help="print JSON on standard output")
    agreed = argparse.ArgumentParser(add_help=False)
    agreed.add_argument("--yes", action="store_true", help="do not ask for consent")
    subparsers = parser.add_subparsers(dest="command", required=True)

    def add(
        name: str, run: Callable[[Deployment, argparse.Namespace], int], text: str, *, asks: bool = False
    ) -> argparse.ArgumentParser:
        command = subparsers.add_parser(name, parents=[common, agreed] if asks else [common], help=text)
        command.set_defaults(run=run)
        return command

    add("dlq", _dlq, "list parked messages with reason and time")

    command = add("redrive", _redrive, "move parked messages back to their queue")
    command.add_argument("queue", help=QUEUE_HELP)
    command.add_argument("--dry-run", action="store_true", help="only print what would be moved")
    command.add_argument("--max", type=_whole(1), help="move at most so many messages")
    selection = command.add_mutually_exclusive_group()
    selection.add_argument("--all", action="store_true", help="also messages that a step parked for a reason")
    selection.add_argument("--reason", help="only messages that were parked for this reason")

    command = add("audit", _audit, "list orders for which a guarantee is broken or late")
    command.add_argument("--repair", action="store_true", help="send missing events again")
    command.add_argument("--age", type=_whole(0), help="seconds; younger facts are not checked (default: as the sweep)")

    add("trace", _trace, "print the story of one order").add_argument("order", type=_order_id)
    add("pause", _switch, "stop the function of a queue from taking messages").add_argument("queue", help=QUEUE_HELP)
    add("resume", _switch, "let the function take messages again").add_argument("queue", help=QUEUE_HELP)

    command = add("forget", _forget, "delete one idempotency record", asks=True)
    command.add_argument("key", help="<operation>#<order id>")
    command.add_argument("--second-mail", action="store_true", help="a second email is better than none")

    command = add("discard", _discard, "move parked messages of one reason into a file", asks=True)
    command.add_argument("queue", help=QUEUE_HELP)
    command.add_argument("reason")

    command = add("settle", _settle, "end a placed order that can never be paid", asks=True)
    command.add_argument("order", type=_order_id)
    command.add_argument("--as", required=True, choices=("declined",), help="the state in which the order ends")
    command.add_argument("--reason", required=True, type=_reason, help="for row and trace, in snake case")

    add("recover", _recover, "put missing order rows back from a copy of the table").add_argument(
        "copy", help="the name of the copied table"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
