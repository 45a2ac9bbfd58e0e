"""The explorer: a local web page for experiments with constraints (``tokenfst explore``).

Read in this order: ``kinds`` (the kinds of input), ``opened`` (a constraint with a vocabulary, and the queries of the
page), ``picture`` (a part of the automaton) and ``layout`` (positions of its states), ``questions`` (the queries by
name), ``server`` (HTTP on the loopback interface, for this page alone). ``page/`` is the front end: plain modules,
without a build step and without resources from other hosts. Without a server the same page uses a worker
(``tools/explorer_page``).
"""
