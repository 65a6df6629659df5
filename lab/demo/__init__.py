"""The laptop run: a local AWS, the same app deployed to it, traffic, faults, and an audit by the witnesses."""
