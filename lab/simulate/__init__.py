"""The pipeline as a queueing model: how long orders take and what piles up, at rates that no laptop can send."""
