"""The application as CDK stacks."""

from stacks.node import provide_node

provide_node()  # before any import of aws_cdk, because aws_cdk starts Node when it is imported
