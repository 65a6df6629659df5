"""`make synth`, `preflight`, `diff`, `deploy` and `destroy`: run the CDK CLI with the inputs of a stage.

`deploy` and `destroy` first ask a person to type account, region and stage.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from stacks.deploy_inputs import REDACTED
from stacks.settings import Settings, settings_from
from stacks.times import SettingsError
from tools import deploy_inputs, preflight
from tools.deploy_inputs import NONE
from tools.deployed import STACKS, is_absent, outputs, stack_name
from tools.preflight import Level, Result
from tools.ses import find_identity

ROOT = Path(__file__).resolve().parents[1]


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


def check_account(stage: str) -> None:
    """Print what stands in the way of a deploy. Raises Stop if the deploy cannot succeed. Changes nothing."""
    values = required_values(stage)
    account = current_account()
    _preflight(account, stage, values)


def deploy(stage: str) -> None:
    """Deploy all stacks, then print what remains to do by hand."""
    values = required_values(stage)
    account = current_account()
    optional = compared_values(account, stage)
    values |= _preflight(account, stage, values)
    consent("Deploy", stage, account, optional)
    allow_another_first_deploy(account, stage)
    # The person agreed to all stacks, so the CLI asks nothing more.
    options = ("--all", "--method=direct", "--require-approval=never", "--outputs-file", "cdk.out/outputs.json")
    cdk("deploy", stage, values, *options)
    todo = [each for each in _results(account, stage, values, preflight.BY_HAND) if each.level is not Level.OK]
    print("\nDo this by hand:" if todo else "\nNothing remains to do by hand.")
    show(todo)


def _preflight(account: Account, stage: str, values: Mapping[str, str]) -> dict[str, str]:
    """Run all checks and print the results. Returns the CDK inputs for an SES identity that exists already.

    Raises Stop if a check found a reason not to deploy.
    """
    identity = _sender_identity(account, stage, values)
    results = _results(account, stage, {**values, **identity}, preflight.CHECKS)
    print(f"Preflight of stage {stage} in {account.name}")
    show(results)
    if reasons := sum(result.level is Level.STOP for result in results):
        raise Stop(f"{reasons} of these results must be corrected first (stop). Nothing was changed.")
    return identity


def _results(
    account: Account, stage: str, values: Mapping[str, str], checks: Sequence[preflight.Check]
) -> list[Result]:
    try:
        identity = find_identity(account.session, values["SENDER"], stack_name(stage, "stateful"))
        topic = outputs(account.session.client("cloudformation"), stage).get("AlarmTopicArn")
    except (ClientError, BotoCoreError) as error:
        raise Stop(f"Cannot read the SES identity and the stacks of stage {stage}: {error}") from None
    inputs = preflight.Inputs(
        account.session, account.account, account.region, _settings(stage, values), identity, topic
    )
    return preflight.run(inputs, checks)


def _settings(stage: str, values: Mapping[str, str]) -> Settings:
    context = {"stage": stage} | {name.lower(): value for name, value in _context(stage, values).items()}
    try:
        return settings_from(context.get)
    except SettingsError as error:
        raise Stop(f"Settings: {error}") from None


def show(results: Sequence[Result]) -> None:
    """Print one line for each result."""
    for result in results:
        print(f"  {result.level:<4}  {result.subject:<18}  {result.text}")


def allow_another_first_deploy(account: Account, stage: str) -> None:
    """Switch off the termination protection of stacks whose first deploy failed.

    The CDK deletes such a stack before it creates the stack again, and CloudFormation refuses to delete a protected
    stack. A stack whose first deploy failed has no data.
    """
    cloudformation = account.session.client("cloudformation")
    for name in (stack_name(stage, stack) for stack in STACKS):
        try:
            (found,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
            if found["StackStatus"] == "ROLLBACK_COMPLETE" and found.get("EnableTerminationProtection"):
                print(f"The first deploy of {name} failed. It is deleted and created again.")
                cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
        except ClientError as error:
            if not is_absent(error):
                raise Stop(f"Cannot prepare {name} for another first deploy: {error}") from None


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
    try:
        identity = find_identity(account.session, values["SENDER"], stack_name(stage, "stateful"))
    except (ClientError, BotoCoreError) as error:
        raise Stop(f"Cannot read the SES identity of {values['SENDER']}: {error}") from None
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
    context = [f"stage={stage}", *(f"{name.lower()}={value}" for name, value in _context(stage, values).items())]
    flags = [part for pair in context for part in ("-c", pair)]
    cli = [str(ROOT / ".venv/bin/node"), str(ROOT / "node_modules/aws-cdk/bin/cdk"), command, "--no-notices"]
    done = subprocess.run([*cli, *flags, *arguments], cwd=ROOT, check=False)
    if done.returncode:
        raise Stop(f"cdk {command} failed with status {done.returncode}. The reason is above.")


def _context(stage: str, values: Mapping[str, str]) -> dict[str, str]:
    return {**values, **{name: value for name, value in deploy_inputs.optional(stage).items() if value}}


def check_arguments(command: str, stage: str) -> None:
    """Raise Stop unless the command knows the stage, and all values that it needs are set."""
    stages = ("local", "sandbox", "prod") if command == "synth" else ("sandbox", "prod")
    if stage not in stages:
        hint = " (`make up` deploys to the laptop)" if command != "synth" else ""
        raise Stop(f"Which stage? make {command} STAGE={'|'.join(stages)}{hint}")
    if command in ("preflight", "diff", "deploy"):
        required_values(stage)


COMMANDS = {"synth": synth, "preflight": check_account, "diff": diff, "deploy": deploy, "destroy": destroy}


def main() -> int:
    """Run one command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="make", description=__doc__)
    parser.add_argument("command", choices=tuple(COMMANDS))
    parser.add_argument("stage", nargs="?", default="")
    parser.add_argument("--ask", action="store_true", help="check the arguments only, before tools are installed")
    arguments = parser.parse_args()
    try:
        check_arguments(arguments.command, arguments.stage)
        if not arguments.ask:
            COMMANDS[arguments.command](arguments.stage)
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
