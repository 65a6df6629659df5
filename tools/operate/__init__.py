"""What an operator runs against a deployed stage, on an account or on the laptop."""
