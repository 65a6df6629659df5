"""MiniStack that ends with the process that started it, however that ends: it holds the other end of our stdin."""

import os
import signal
import sys
import threading

from ministack.app import main


def end_with_the_starter() -> None:
    """Wait until nobody holds the other end of stdin any more, then end this whole group, workers included."""
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with_the_starter, daemon=True).start()
    main()
