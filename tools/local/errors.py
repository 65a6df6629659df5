"""What can go wrong on the laptop, said so that a person knows what to do."""

from pathlib import Path


class LocalStackError(Exception):
    """The local AWS or the deployment to it failed. Holds the last lines of the log that tells why."""

    def __init__(self, message: str, log: Path | None = None, lines: int = 15) -> None:
        super().__init__(message)
        self.tail = log.read_text(errors="replace").splitlines()[-lines:] if log and log.exists() else []

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  | {line}" for line in self.tail)])
