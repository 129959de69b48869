"""Entry point. What must answer at once is answered before the command line is built."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from ctxctl import __version__

        print(f"ctxctl {__version__}")
        return
    import gc

    from ctxctl.cli.app import run

    # one command allocates much and drops little: the collector would only walk it again and again
    gc.disable()
    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
