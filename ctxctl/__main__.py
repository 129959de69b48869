"""`python -m ctxctl`."""

from ctxctl.cli.main import main

main()
