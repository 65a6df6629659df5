"""A local AWS (MiniStack) with the application deployed to it by the CDK CLI."""
