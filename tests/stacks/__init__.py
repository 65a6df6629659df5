import stacks  # noqa: F401 - finds Node, before a test imports aws_cdk, which starts it
