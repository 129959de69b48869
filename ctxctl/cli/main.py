"""Entry point. What must answer at once is answered before the command line is built."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        status = _status(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are loaded; later ones are met where commands run
        status = 130
    if status:
        sys.exit(status)


def _status(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]) and sys.stdout is not None:
        from ctxctl import __version__

        try:
            os.write(sys.stdout.fileno(), f"ctxctl {__version__}\n".encode())
        except BrokenPipeError:
            return 141
        except OSError as error:
            print(f"error: standard output can't be written: {error.strerror}", file=sys.stderr)
            return 3
        return 0
    import gc

    # one command allocates much and drops little: the collector would only walk it again and again
    gc.disable()
    if arguments[:2] == ["hook", "run"] and not {"-h", "--help"} & set(arguments):
        from ctxctl.cli.hook_run import hook_run

        # what is left to do is to take down what was read, and the agent waits
        os._exit(hook_run(arguments[2:]))
    if arguments[:1] == ["statusline"] and not {"-h", "--help"} & set(arguments):
        from ctxctl.cli.statusline import statusline

        if (status := statusline(arguments[1:])) is not None:
            os._exit(status)
    from ctxctl.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    main()
