"""The application as CDK stacks."""

from stacks.node import provide_node

provide_node()  # before anything imports aws_cdk, which starts Node at import
