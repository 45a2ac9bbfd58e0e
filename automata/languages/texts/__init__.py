"""The texts of an automaton: counted, listed by number, and drawn at random.

The one idea is a numbering: the texts that an automaton accepts have an order, and sums over its states say how many
begin in each way. Needs the byte automaton alone, not the languages above it.

Read in this order: ``walk`` (texts by number), ``uniform`` (draws by those numbers), ``sampling`` (readable draws).
"""
