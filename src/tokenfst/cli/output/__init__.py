"""What a user sees: ``terminal`` (streams, colours, JSON), ``exits`` (codes, what is wrong with a command line),
``plots``, ``examples`` (the ends of the help pages)."""
