"""The live page (`make console`): two pipelines side by side, with buttons for what goes wrong in real ones."""

from lab.demo.lanes import NAIVE, OURS

LANES = (NAIVE, OURS)  # from left to right
