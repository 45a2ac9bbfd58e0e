"""Commands about this machine: ``serving`` and ``exploring`` answer requests until they are interrupted; ``doctor``
says what is installed."""
