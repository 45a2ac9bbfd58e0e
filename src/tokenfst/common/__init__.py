"""What all rooms use, and no user of tokenfst calls. Of tokenfst it imports only ``tokenfst.errors`` and
``tokenfst.budget``.

Read in this order: ``plurals`` and ``printable`` (words and texts in messages), ``digits`` (numbers in texts),
``arguments`` (checks of public calls) and ``token_ids`` (those of calls that run for every token), ``locks``
(consistent after a fork), ``clock_cache``, ``json_objects``, ``notebook`` (what notebooks show), ``renamed`` and
``moved`` (old names of parameters and modules).
"""
