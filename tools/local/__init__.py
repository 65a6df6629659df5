"""A local AWS (MiniStack) of one's own, with the app deployed to it by the CDK CLI."""
