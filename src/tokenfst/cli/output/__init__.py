"""Output that all commands share: ``terminal`` (streams, colours, JSON), ``exits`` (exit codes, errors of the command
line), ``examples`` (the examples at the end of the help pages).
"""
