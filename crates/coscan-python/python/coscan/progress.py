"""Progress of long statements, on standard error: in terminals and notebooks."""

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

# Statements that take less time show nothing.
_SECONDS_BEFORE = 1.0
_SECONDS_BETWEEN = 0.2


def should_show() -> bool:
    """Whether to show progress. `COSCAN_PROGRESS` decides if it is set (empty or 0: no), or else whether standard error is a terminal
    or a notebook's.
    """
    chosen = os.environ.get("COSCAN_PROGRESS")
    if chosen is not None:
        return chosen not in ("", "0")
    # Notebooks show what is written to their own streams.
    if type(sys.stderr).__module__.startswith("ipykernel"):
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # It is none, closed, or replaced by something simpler.
        return False


class ProgressLine:
    """Shows the progress of a statement until the end of a `with` statement.

    `progress` gives the chunks that are done, and those that are needed.
    """

    def __init__(self, progress: Callable[[], tuple[int, int]]) -> None:
        self._progress = progress
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if should_show():
            self._thread = threading.Thread(target=self._show, name="coscan-progress", daemon=True)
            self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        started, width = time.monotonic(), 0
        pause = _SECONDS_BEFORE
        while not self._ended.wait(pause):
            line = _line(*self._progress(), time.monotonic() - started)
            _write("\r" + line.ljust(width))
            width, pause = len(line), _SECONDS_BETWEEN
        if width:
            _write("\r" + " " * width + "\r")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass  # Nobody sees it.


def _line(done: int, needed: int, seconds: float) -> str:
    if needed == 0:
        return f"running for {seconds:.0f} s"
    return f"{done / needed:.0%}: {done:,} of {needed:,} chunks, {seconds:.0f} s"
