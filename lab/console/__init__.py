"""The live page (`make console`): two pipelines side by side, and buttons that cause failures."""

from lab.variants import NAIVE, THIS_REPO

VARIANTS = (NAIVE, THIS_REPO)  # from left to right
