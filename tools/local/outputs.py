"""The stacks' outputs as one flat object, under the names that other people's scripts hold on to."""

from collections.abc import Mapping

from tools.local.errors import LocalStackError

NAMES = (
    "ApiUrl",
    "OrdersQueueUrl",
    "OrdersDlqUrl",
    "PaymentsQueueUrl",
    "PaymentsDlqUrl",
    "EmailsQueueUrl",
    "EmailsDlqUrl",
    "IdempotencyTableName",
    "OrdersTableName",
    "ReceiptsBucketName",
    "PaymentSandboxUrl",
)
OF_THE_CDK_ITSELF = ("ExportsOutput", "PublishOutput")


def flatten(by_stack: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Raises LocalStackError if a promised name is missing or two stacks differ about one."""
    flat: dict[str, str] = {}
    for stack, outputs in by_stack.items():
        for name, value in outputs.items():
            if name.startswith(OF_THE_CDK_ITSELF):
                continue
            if flat.setdefault(name, value) != value:
                raise LocalStackError(f"The output {name} is {flat[name]!r} in one stack and {value!r} in {stack}.")
    if missing := [name for name in NAMES if name not in flat]:
        raise LocalStackError(f"The deployed stacks have no output {', '.join(missing)}.")
    return flat
