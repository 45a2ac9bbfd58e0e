"""The explorer: a page on this machine to play with constraints (``tokenfst explore``).

Read in this order: ``kinds`` (what can be typed), ``opened`` (a constraint with a vocabulary, and every question that
the page asks of it), ``picture`` (a part of the automaton) and ``layout`` (where its states stand), ``questions`` (the
questions by name), ``server`` (HTTP on the loopback, for this page alone). ``page/`` is the front end: plain modules,
no build step, nothing from another host. Without a server the same page asks a worker (``tools/explorer_page``).
"""
