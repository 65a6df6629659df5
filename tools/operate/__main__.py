"""An operator's commands (`make dlq`, `make audit`, ...): `python -m tools.operate <command> --stage <stage>`.

Exit status: 0 nothing is wrong, 1 something is (a message is parked or could not be moved, the audit found something,
nobody knows the order or the record), 2 it could not be told or done, was not consented to, or was interrupted.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable

import stripe
from botocore.exceptions import BotoCoreError, ClientError

from tools.account import Stop
from tools.operate import audit as auditing
from tools.operate import consent, dlq, forget, printing, redrive, switch, trace
from tools.operate import discard as discarding
from tools.operate import recover as recovering
from tools.operate.deployment import Deployment, find
from tools.progress import Steps

COULD_NOT = 2
QUEUE = "as in the stage's outputs: orders of OrdersQueueUrl and OrdersDlqUrl"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit status."""
    asked = _parser().parse_args(arguments)
    try:
        deployment = find(asked.stage)
        printing.progress.print(f"{asked.command}: {deployment.where}", style="dim", markup=False)
        command: Callable[[Deployment, argparse.Namespace], int] = asked.run
        return command(deployment, asked)
    except (Stop, ClientError, BotoCoreError, stripe.StripeError) as error:
        printing.progress.print(f"\n{error}", style="red", markup=False)
    except KeyboardInterrupt:
        printing.progress.print("\nInterrupted. Nothing is half-done: run it again.", style="red")
    return COULD_NOT


def _dlq(deployment: Deployment, asked: argparse.Namespace) -> int:
    with Steps(printing.progress) as steps, steps.step("looking into the DLQs"):
        found = dlq.look_everywhere(deployment)
    _say(asked, lambda: printing.dlq(found), dlq.report(deployment, found))
    return int(not all(letters.is_empty for letters in found))


def _redrive(deployment: Deployment, asked: argparse.Namespace) -> int:
    wish = redrive.Wish(asked.queue, asked.all, asked.reason, asked.max, asked.dry_run)
    with Steps(printing.progress) as steps, steps.step(f"redriving {wish.queue}") as tell:
        done = redrive.redrive(deployment, wish, lambda moved, total: tell(done=moved, total=total))
    _say(asked, lambda: printing.redrive(wish, done), redrive.report(deployment, wish, done))
    return int(not done.is_well)


def _audit(deployment: Deployment, asked: argparse.Namespace) -> int:
    verdict = auditing.Auditor(deployment, Steps(printing.progress), asked.age).run(asked.repair)
    _say(asked, lambda: printing.audit(verdict), auditing.report(deployment, verdict))
    return int(bool(verdict.wrong))


def _trace(deployment: Deployment, asked: argparse.Namespace) -> int:
    with Steps(printing.progress) as steps, steps.step(f"asking about {asked.order}"):
        story = trace.trace(deployment, asked.order)
    _say(asked, lambda: printing.trace(story), trace.report(deployment, story))
    return int(not story.is_known)


def _switch(deployment: Deployment, asked: argparse.Namespace) -> int:
    on = asked.command == "resume"
    with Steps(printing.progress) as steps, steps.step(f"{asked.queue}: {'resuming' if on else 'pausing'}"):
        done = switch.switch(deployment, asked.queue, on=on)
    _say(asked, lambda: printing.switched(done), switch.report(deployment, done))
    return 0


def _forget(deployment: Deployment, asked: argparse.Namespace) -> int:
    image = forget.look(deployment, asked.key)
    if image is not None:
        forget.refuse(image, second_mail=asked.second_mail)
        printing.record(forget.shown(image))
        consent.require(
            asked.key, "This record is deleted, and its step runs again when its event comes.", given=asked.yes
        )
        forget.forget(deployment, image)
    _say(asked, lambda: printing.forgotten(asked.key, image), forget.report(deployment, asked.key, image))
    return int(image is None)


def _discard(deployment: Deployment, asked: argparse.Namespace) -> int:
    ids = discarding.candidates(deployment, asked.queue, asked.reason)
    file = discarding.file_of(deployment)
    if ids:
        about = f"{len(ids)} messages leave the DLQ of {asked.queue} for {file}.\nThat file holds customers' data."
        consent.require(f"{asked.queue} {asked.reason}", about, given=asked.yes)
    done = discarding.discard(deployment, asked.queue, asked.reason, ids)
    _say(asked, lambda: printing.discarded(done), discarding.report(deployment, done))
    return 0


def _recover(deployment: Deployment, asked: argparse.Namespace) -> int:
    with Steps(printing.progress) as steps, steps.step(f"rows of {asked.copy}") as tell:
        done = recovering.recover(deployment, asked.copy, lambda rows: tell(done=rows))
    _say(asked, lambda: printing.recovered(done), recovering.report(deployment, asked.copy, done))
    return 0


def _say(asked: argparse.Namespace, to_people: Callable[[], None], to_machines: dict[str, object]) -> None:
    if asked.json:
        print(json.dumps(to_machines, indent=2))
    else:
        to_people()


def _order_id(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", text):
        raise argparse.ArgumentTypeError("which order? ORDER=ord_1")
    return text


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.operate", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--stage", choices=("local", "sandbox", "prod"), default="local")
    common.add_argument("--json", action="store_true", help="machine-readable, on standard output")
    commands = parser.add_subparsers(dest="command", required=True)

    look = commands.add_parser("dlq", parents=[common], help="what is parked, why, and since when")
    look.set_defaults(run=_dlq)

    move = commands.add_parser("redrive", parents=[common], help="parked messages back to their queue")
    move.set_defaults(run=_redrive)
    move.add_argument("queue", help=QUEUE)
    move.add_argument("--dry-run", action="store_true", help="only say what would be moved")
    move.add_argument("--max", type=_whole(1), help="so many messages at most")
    which = move.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="also what was parked for good, for a reason")
    which.add_argument("--reason", help="only what was parked for this reason")

    walk = commands.add_parser("audit", parents=[common], help="orders of which the promise does not hold, or not yet")
    walk.set_defaults(run=_audit)
    walk.add_argument("--repair", action="store_true", help="send missing events again")
    walk.add_argument("--age", type=_whole(0), help="seconds; younger facts are not judged (the sweep's age)")

    story = commands.add_parser("trace", parents=[common], help="one order's story")
    story.set_defaults(run=_trace)
    story.add_argument("order", type=_order_id)

    yes = argparse.ArgumentParser(add_help=False)
    yes.add_argument("--yes", action="store_true", help="you have consented")

    for name, what in (("pause", "stop a queue's function from taking messages"), ("resume", "let it take them again")):
        turn = commands.add_parser(name, parents=[common], help=what)
        turn.set_defaults(run=_switch)
        turn.add_argument("queue", help=QUEUE)

    record = commands.add_parser("forget", parents=[common, yes], help="delete one idempotency record")
    record.set_defaults(run=_forget)
    record.add_argument("key", help="<operation>#<order id>")
    record.add_argument("--second-mail", action="store_true", help="a second mail is better than none")

    away = commands.add_parser("discard", parents=[common, yes], help="parked messages of one reason into a file")
    away.set_defaults(run=_discard)
    away.add_argument("queue", help=QUEUE)
    away.add_argument("reason")

    back = commands.add_parser(
        "recover", parents=[common], help="order rows that are missing, from a copy of the table"
    )
    back.set_defaults(run=_recover)
    back.add_argument("copy", help="the copy's table name")
    return parser


if __name__ == "__main__":
    sys.exit(main())
