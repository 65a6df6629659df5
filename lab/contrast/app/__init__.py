"""The demo's own CDK app, for a laptop only: ours exactly as in a deployment, and the other lanes beside it."""

import stacks  # noqa: F401 - before anything imports aws_cdk: it finds the Node that this starts
