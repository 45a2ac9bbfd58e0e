"""From the options of a command to a constraint.

``options`` is the group of options that stands for a constraint, ``constraints`` what it becomes. The others read
one kind each: ``grammars``, ``schemas``, ``rules`` (options of both), ``symbols``, ``objects``, ``labels``,
``concepts``, ``tags``, ``relations`` (texts near the constraint's).
"""
