"""Counting, ranking and random sampling of the texts that an automaton accepts.

The idea is a numbering. The accepted texts have an order, and sums over the states give the number of texts that
continue each prefix. The algorithms need only the byte automaton, not the ``Language`` above it.

Invariant: counts are exact integers and depend on the language only. Cost: configurations times lengths, within the
budget.

Read in this order: ``walk`` (texts by number), ``uniform`` (uniform draws by those numbers), ``sampling`` (readable
draws).
"""
