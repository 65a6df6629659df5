"""`make synth`, `diff`, `deploy` and `destroy`: run the CDK CLI with the inputs of a stage.

`deploy` and `destroy` first ask a person to type account, region and stage.
"""

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

from stacks.deploy_inputs import REDACTED
from tools import deploy_inputs
from tools.deploy_inputs import NONE
from tools.deployed import outputs, stack_name
from tools.ses import email_advice, find_identity

ROOT = Path(__file__).resolve().parents[1]
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"


class Stop(Exception):
    """The command cannot go on. It changed nothing. The text says why, and what to do."""


@dataclass(frozen=True)
class Account:
    """The account and region that a command acts on, and the caller, as AWS reports them."""

    account: str
    region: str
    caller: str
    session: Any

    @property
    def name(self) -> str:
        return f"{self.account} {self.region}"


def synth(stage: str) -> None:
    """Write cdk.out/. Print which values are placeholders."""
    values = deploy_inputs.required(stage)
    for name in deploy_inputs.missing(stage):
        print(f"synth: {name}={values[name]} is a placeholder")
    shutil.rmtree(ROOT / "cdk.out", ignore_errors=True)  # it may hold the templates of another stage
    cdk("synth", stage, values, "--quiet")
    print(f"cdk.out/ holds the templates of stage {stage}")


def diff(stage: str) -> None:
    """Show what a deploy would change. Changes nothing."""
    values = required_values(stage)
    account = current_account()
    cdk("diff", stage, values | _sender_identity(account, stage, values))


def deploy(stage: str) -> None:
    """Deploy all stacks, then print what remains to do by hand."""
    values = required_values(stage)
    account = current_account()
    require_bootstrap(account)
    optional = compared_values(account, stage)
    values |= _sender_identity(account, stage, values)
    consent("Deploy", stage, account, optional)
    # The person agreed to all stacks, so the CLI asks nothing more.
    options = ("--all", "--method=direct", "--require-approval=never", "--outputs-file", "cdk.out/outputs.json")
    cdk("deploy", stage, values, *options)
    identity = values.get("SENDER_IDENTITY", values["SENDER"])
    print(email_advice(account.session.client("sesv2"), identity, account.region))


def destroy(stage: str) -> None:
    """Delete the stacks. In prod the stack with the data stays."""
    account = current_account()
    stacks = ["--all"]
    if stage == "prod":
        stacks = [*(stack_name(stage, name) for name in ("observability", "pipeline")), "--exclusively"]
        print("The stack with the tables and the receipts is protected and stays. The queues are deleted with all")
        print("their messages. First stop the producers, let the queues drain, and see `make audit` and `make dlq`.")
    consent("Destroy", stage, account)
    cdk("destroy", stage, deploy_inputs.required(stage), *stacks, "--force")


def _sender_identity(account: Account, stage: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the CDK inputs for an SES identity that exists already."""
    identity = find_identity(account.session, values["SENDER"], stack_name(stage, "stateful"))
    if identity is None:
        return {}
    found = {}
    if not identity.is_from_stack:
        print(f"SES already has the identity {identity.name}. The stack uses it, and a destroy leaves it.")
        found["SENDER_IDENTITY"] = identity.name
    if identity.configuration_set:
        print(f"Its default configuration set is {identity.configuration_set}. The email function may use it.")
        found["CONFIGURATION_SET"] = identity.configuration_set
    return found


def required_values(stage: str) -> dict[str, str]:
    """Return the required values. Raises Stop naming those that are missing."""
    if missing := deploy_inputs.missing(stage):
        raise Stop("\n".join(f"Stage {stage} needs {deploy_inputs.DESCRIPTIONS[name]}" for name in missing))
    return deploy_inputs.required(stage)


def require_endpoint() -> None:
    """Raise Stop if AWS_ENDPOINT_URL is a local address at which nothing listens, left from a local AWS that ended."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    address = urlsplit(endpoint)
    if address.hostname not in ("localhost", "127.0.0.1"):
        return
    try:
        socket.create_connection((address.hostname, address.port or 80), timeout=2).close()
    except OSError:
        raise Stop(
            f"Nothing listens at AWS_ENDPOINT_URL={endpoint}. This shell has it from a local AWS that ended.\n"
            "Load the .local/env of one that runs, or: unset AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY "
            "AWS_SESSION_TOKEN"
        ) from None


def current_account() -> Account:
    """Return the account of the current credentials. Raises Stop without credentials that work, or without a region."""
    require_endpoint()
    # The CDK CLI reads AWS_REGION. boto3 does not.
    session: Any = boto3.session.Session(region_name=os.environ.get("AWS_REGION"))
    if not session.region_name:
        raise Stop("No region is set: export AWS_REGION=eu-central-1, or choose a profile with a region (AWS_PROFILE).")
    try:
        identity = session.client("sts").get_caller_identity()
    except NoCredentialsError:
        raise Stop(
            "There are no AWS credentials: log in (aws sso login), choose a profile (AWS_PROFILE=name), or export keys."
        ) from None
    except (ClientError, BotoCoreError) as error:
        raise Stop(f"AWS refuses the credentials: {error}") from None
    return Account(identity["Account"], session.region_name, identity["Arn"], session)


def require_bootstrap(account: Account) -> None:
    """Raise Stop if the account and region were never bootstrapped for the CDK."""
    try:
        account.session.client("ssm").get_parameter(Name=BOOTSTRAP)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ParameterNotFound":
            raise Stop(f"Cannot read whether {account.name} is bootstrapped for the CDK: {error}") from None
        raise Stop(
            f"{account.name} is not bootstrapped for the CDK. Once per account and region:\n"
            f"  .venv/bin/node node_modules/aws-cdk/bin/cdk bootstrap aws://{account.account}/{account.region}"
        ) from None


def compared_values(account: Account, stage: str) -> dict[str, str]:
    """Return the optional values as shown to a person: with the value of the last deploy where it differs.

    Raises Stop if the last deploy had a value that is not set now.
    """
    try:
        before = deploy_inputs.previous(outputs(account.session.client("cloudformation"), stage), stage)
    except ClientError as error:
        raise Stop(f"Cannot read the values of the last deploy of stage {stage}: {error}") from None
    if lost := {name: value for name, value in before.items() if not os.environ.get(name)}:
        removals = " ".join(f"{name}={NONE}" for name in lost)
        raise Stop(
            "\n".join(
                [
                    f"The last deploy of stage {stage} had these values, and this deploy would remove them:",
                    *(f"  {name:<11}  {value}" for name, value in lost.items()),
                    f"Set each again. To remove values on purpose: {removals}",
                ]
            )
        )
    now = {name: value or NONE for name, value in deploy_inputs.optional(stage).items()}
    changed = {name: old for name, old in before.items() if old not in (now[name], REDACTED)}
    return now | {name: f"{now[name]} (before: {old})" for name, old in changed.items()}


def consent(verb: str, stage: str, account: Account, values: Mapping[str, str] = MappingProxyType({})) -> None:
    """Show what will happen, and ask a person to type account, region and stage.

    Raises Stop unless they are typed exactly.
    """
    print(f"\n{verb}\n  account  {account.account}\n  region   {account.region}\n  stage    {stage}")
    print(f"  as       {account.caller}")
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        print(f"  at       {endpoint}")
    for name, value in values.items():
        print(f"  {name:<11}  {value}")
    expected = f"{account.account} {account.region} {stage}"
    try:
        typed = input(f"\nType `{expected}` to continue: ")
    except EOFError:
        typed = ""
    if " ".join(typed.split()) != expected:
        raise Stop("The text is different: nothing was done.")


def cdk(command: str, stage: str, values: Mapping[str, str], *arguments: str) -> None:
    """Run the CDK CLI of this clone with these values and the optional ones. Raises Stop with its exit status."""
    optional = {name: value for name, value in deploy_inputs.optional(stage).items() if value}
    context = [f"stage={stage}", *(f"{name.lower()}={value}" for name, value in {**values, **optional}.items())]
    flags = [part for pair in context for part in ("-c", pair)]
    cli = [str(ROOT / ".venv/bin/node"), str(ROOT / "node_modules/aws-cdk/bin/cdk"), command, "--no-notices"]
    done = subprocess.run([*cli, *flags, *arguments], cwd=ROOT, check=False)
    if done.returncode:
        raise Stop(f"cdk {command} failed with status {done.returncode}. The reason is above.")


def check_arguments(command: str, stage: str) -> None:
    """Raise Stop unless the command knows the stage, and all values that it needs are set."""
    stages = ("local", "sandbox", "prod") if command == "synth" else ("sandbox", "prod")
    if stage not in stages:
        hint = " (`make up` deploys to the laptop)" if command != "synth" else ""
        raise Stop(f"Which stage? make {command} STAGE={'|'.join(stages)}{hint}")
    if command in ("diff", "deploy"):
        required_values(stage)


def main() -> int:
    """Run one command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="make", description=__doc__)
    parser.add_argument("command", choices=("synth", "diff", "deploy", "destroy"))
    parser.add_argument("stage", nargs="?", default="")
    parser.add_argument("--ask", action="store_true", help="check the arguments only, before tools are installed")
    arguments = parser.parse_args()
    try:
        check_arguments(arguments.command, arguments.stage)
        if not arguments.ask:
            commands = {"synth": synth, "diff": diff, "deploy": deploy, "destroy": destroy}
            commands[arguments.command](arguments.stage)
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
