"""The command line: `coscan`, or `python -m coscan`."""

import signal
import sys

from coscan._native import main as _main


def main() -> int:
    # Commands decide themselves what Ctrl-C does.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _main(["coscan", *sys.argv[1:]], [sys.executable, "-m", "coscan"])


if __name__ == "__main__":
    sys.exit(main())
