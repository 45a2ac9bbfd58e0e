"""Construction of a constraint from the options of a command.

``options`` defines the options that describe a constraint, and ``constraints`` builds it. The other modules each handle
one kind: ``grammars``, ``schemas``, ``rules`` (options of both), ``symbols``, ``objects``, ``labels``, ``concepts``,
``tags``, ``relations`` (texts near the constraint's).
"""
