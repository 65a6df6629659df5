"""A person's consent: typed word for word, or said beforehand."""

import sys

from tools.account import Stop
from tools.operate.printing import progress


def require(word: str, about: str, *, given: bool) -> None:
    """Ask on standard error until the line is there. Raises Stop unless it is `word`, or consent was `given` before."""
    if given:
        return
    progress.print(f"\n{about}\nType `{word}` to go on:", markup=False)
    if sys.stdin.readline().strip() != word:
        raise Stop("That is something else: nothing was done.")
