"""What the adapters of engines share: constraints and scores of requests, texts of engines that pass whole sequences.

``requests``: the constraint of a server request, and its matcher in an engine's step; ``served_scores``: scores that
requests name; ``text_rows``: loops that pass the whole token sequence at each step.

Invariant: one request cannot change another's constraint. Cost: a comparison of the ids with those of the last call,
and a mask for each row.
"""
