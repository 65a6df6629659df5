"""`make synth`, `diff`, `deploy` and `destroy`: the CDK CLI with what a stage needs, and with a person's consent."""

import argparse
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from stacks.settings import UNTOLD
from tools import optional
from tools.deployed import outputs, stack_name
from tools.mail import known_identity, mail_advice

ROOT = Path(__file__).resolve().parents[1]
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
# Good enough to look at the templates; `deploy` takes no placeholder.
PLACEHOLDERS = {
    "SENDER": "orders@example.com",
    "PROVIDER_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:provider-AbCdEf",
}
NEEDS = {"local": (), "sandbox": ("SENDER",), "prod": ("SENDER", "PROVIDER_SECRET_ARN")}
WHAT = {
    "SENDER": "the address that receipts come from, SENDER=orders@your-domain.example",
    "PROVIDER_SECRET_ARN": "the secret with the Stripe key, PROVIDER_SECRET_ARN=arn:aws:secretsmanager:...",
}


class Stop(Exception):
    """Nothing was done; the text says why and what to do."""


@dataclass(frozen=True)
class Account:
    """Where a command would act, as AWS itself says."""

    account: str
    region: str
    caller: str
    session: Any

    @property
    def name(self) -> str:
        return f"{self.account} {self.region}"


def synth(stage: str) -> None:
    """Write cdk.out/; what a person did not supply is a placeholder, and said so."""
    given = {name: os.environ.get(name) or PLACEHOLDERS[name] for name in NEEDS[stage]}
    for name in NEEDS[stage]:
        if not os.environ.get(name):
            print(f"synth: {name}={given[name]} is a placeholder")
    shutil.rmtree(ROOT / "cdk.out", ignore_errors=True)  # another stage's templates must not lie beside
    cdk("synth", stage, given, "--quiet")
    print(f"cdk.out/ holds the templates of stage {stage}")


def diff(stage: str) -> None:
    """Show what a deploy would change; changes nothing."""
    given = supplied(stage)
    where = current_account()
    cdk("diff", stage, given | _sender_identity(where, stage, given))


def deploy(stage: str) -> None:
    """Deploy all stacks, then say what only a person can do."""
    given = supplied(stage)
    where = current_account()
    require_bootstrap(where)
    values = values_of(where, stage)
    given |= _sender_identity(where, stage, given)
    consent("Deploy", stage, where, values)
    # Consent was given for all of it: the CLI need not ask once more for each stack.
    how = ("--all", "--method=direct", "--require-approval=never", "--outputs-file", "cdk.out/outputs.json")
    cdk("deploy", stage, given, *how)
    print(mail_advice(where.session.client("sesv2"), given.get("SENDER_IDENTITY", given["SENDER"]), where.region))


def destroy(stage: str) -> None:
    """Delete the stacks; those with data only where the stage says that its data may go."""
    given = {name: os.environ.get(name) or PLACEHOLDERS[name] for name in NEEDS[stage]}
    where = current_account()
    stacks = ["--all"]
    if stage == "prod":
        stacks = [*(stack_name(stage, name) for name in ("observability", "pipeline")), "--exclusively"]
        print("The stack with the tables and the receipts is protected and stays. The queues go, with all that is on")
        print("them: first close the way in, let the queues run empty, and see `make audit` and `make dlq`.")
    consent("Destroy", stage, where)
    cdk("destroy", stage, given, *stacks, "--force")


def _sender_identity(where: Account, stage: str, given: dict[str, str]) -> dict[str, str]:
    identity = known_identity(where.session, given["SENDER"], stack_name(stage, "stateful"))
    if identity is None:
        return {}
    found = {}
    if not identity.is_the_stacks:
        print(f"SES has the identity {identity.name} already: mails go out under it, and a destroy leaves it.")
        found["SENDER_IDENTITY"] = identity.name
    if identity.configuration_set:
        print(f"Its mails go through the configuration set {identity.configuration_set}, which needs a right too.")
        found["CONFIGURATION_SET"] = identity.configuration_set
    return found


def supplied(stage: str) -> dict[str, str]:
    """Raises Stop naming what is missing."""
    missing = [name for name in NEEDS[stage] if not os.environ.get(name)]
    if missing:
        raise Stop("\n".join(f"Stage {stage} needs {WHAT[name]}" for name in missing))
    return {name: os.environ[name] for name in NEEDS[stage]}


def require_endpoint() -> None:
    """Raises Stop if the environment names an address where nothing listens: that of a local stack that has ended."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    address = urlsplit(endpoint)
    if address.hostname not in ("localhost", "127.0.0.1"):
        return
    try:
        socket.create_connection((address.hostname, address.port or 80), timeout=2).close()
    except OSError:
        raise Stop(
            f"Nothing listens at AWS_ENDPOINT_URL={endpoint}, which this shell has of a local stack that has ended.\n"
            "Read the .local/env of one that runs, or: unset AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY "
            "AWS_SESSION_TOKEN"
        ) from None


def current_account() -> Account:
    """Raises Stop if there are no credentials, none that work, or no region."""
    require_endpoint()
    # AWS_REGION is what the CDK CLI goes by, and what boto3 does not look at.
    session: Any = boto3.session.Session(region_name=os.environ.get("AWS_REGION"))
    if not session.region_name:
        raise Stop("No region is set: export AWS_REGION=eu-central-1, or choose a profile that has one (AWS_PROFILE).")
    try:
        identity = session.client("sts").get_caller_identity()
    except NoCredentialsError:
        raise Stop(
            "There are no AWS credentials: log in (aws sso login), choose a profile (AWS_PROFILE=name), or export keys."
        ) from None
    except (ClientError, BotoCoreError) as error:
        raise Stop(f"AWS does not accept the credentials: {error}") from None
    return Account(identity["Account"], session.region_name, identity["Arn"], session)


def require_bootstrap(where: Account) -> None:
    """Raises Stop if the CDK was never bootstrapped there."""
    try:
        where.session.client("ssm").get_parameter(Name=BOOTSTRAP)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ParameterNotFound":
            raise Stop(f"Whether the CDK is bootstrapped in {where.name} can not be told: {error}") from None
        raise Stop(
            f"The CDK is not bootstrapped in {where.name}. Once per account and region:\n"
            f"  .venv/bin/node node_modules/aws-cdk/bin/cdk bootstrap aws://{where.account}/{where.region}"
        ) from None


def values_of(where: Account, stage: str) -> dict[str, str]:
    """The optional values, each as a person is to see it: beside what the stage was deployed with, where that differs.

    Raises Stop if it was deployed with one that nobody mentions now.
    """
    try:
        before = optional.before(outputs(where.session.client("cloudformation"), stage), stage)
    except ClientError as error:
        raise Stop(f"What stage {stage} was deployed with can not be told: {error}") from None
    if lost := {name: value for name, value in before.items() if not os.environ.get(name)}:
        names = " ".join(f"{name}={optional.NONE}" for name in lost)
        raise Stop(
            "\n".join(
                [
                    f"Stage {stage} was deployed with these, and this deploy would take them away:",
                    *(f"  {name:<11}  {value}" for name, value in lost.items()),
                    f"Give each again. What is to go, say so: {names}",
                ]
            )
        )
    now = {name: value or optional.NONE for name, value in optional.given(stage).items()}
    changed = {name: was for name, was in before.items() if was not in (now[name], UNTOLD)}
    return now | {name: f"{now[name]} (before: {was})" for name, was in changed.items()}


def consent(verb: str, stage: str, where: Account, values: Mapping[str, str] = MappingProxyType({})) -> None:
    """Let a person type account, region and stage, who is shown the optional values that go with them.

    Raises Stop unless they are typed exactly.
    """
    print(f"\n{verb}\n  account  {where.account}\n  region   {where.region}\n  stage    {stage}")
    print(f"  as       {where.caller}")
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        print(f"  at       {endpoint}")
    for name, value in values.items():
        print(f"  {name:<11}  {value}")
    wanted = f"{where.account} {where.region} {stage}"
    try:
        typed = input(f"\nType `{wanted}` to go on: ")
    except EOFError:
        typed = ""
    if " ".join(typed.split()) != wanted:
        raise Stop("That is something else: nothing was done.")


def cdk(command: str, stage: str, given: dict[str, str], *arguments: str) -> None:
    """Run the CDK CLI of this clone. Raises Stop with its exit status."""
    given = given | {name: value for name, value in optional.given(stage).items() if value}
    context = [f"stage={stage}", *(f"{name.lower()}={value}" for name, value in given.items())]
    flags = [part for pair in context for part in ("-c", pair)]
    cli = [str(ROOT / ".venv/bin/node"), str(ROOT / "node_modules/aws-cdk/bin/cdk"), command, "--no-notices"]
    done = subprocess.run([*cli, *flags, *arguments], cwd=ROOT, check=False)
    if done.returncode:
        raise Stop(f"cdk {command} failed with status {done.returncode}; the reason is above.")


def ask(command: str, stage: str) -> None:
    """Raises Stop unless the stage is one that the command knows, with all that it needs."""
    stages = ("local", "sandbox", "prod") if command == "synth" else ("sandbox", "prod")
    if stage not in stages:
        hint = " (`make up` deploys to the laptop)" if command != "synth" else ""
        raise Stop(f"Which stage? make {command} STAGE={'|'.join(stages)}{hint}")
    if command in ("diff", "deploy"):
        supplied(stage)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make", description=__doc__)
    parser.add_argument("command", choices=("synth", "diff", "deploy", "destroy"))
    parser.add_argument("stage", nargs="?", default="")
    parser.add_argument("--ask", action="store_true", help="only look whether all is given, before tools are installed")
    asked = parser.parse_args()
    try:
        ask(asked.command, asked.stage)
        if not asked.ask:
            {"synth": synth, "diff": diff, "deploy": deploy, "destroy": destroy}[asked.command](asked.stage)
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
