"""``python -m maxmargin`` is the command line, as is the command ``maxmargin``."""

import sys

__all__ = ["run"]


def run() -> int:
    """Run the command line; a Ctrl-C while it is being imported ends it without a traceback."""
    try:
        from .cli import main
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as after any other
    return main()


if __name__ == "__main__":
    sys.exit(run())
