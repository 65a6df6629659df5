"""The CDK app of the lab, for a laptop only: this repository as in a deployment, and the other variants."""

import stacks  # noqa: F401 - import before aws_cdk: it sets the Node of jsii
