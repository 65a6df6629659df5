"""The operator's commands on a deployed stage, in an account or on the laptop."""
