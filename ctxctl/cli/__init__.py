"""The command line: arguments in, streams and exit status out."""
