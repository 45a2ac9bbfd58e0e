"""Helpers of all rooms, which are not part of the public interface. They import nothing of tokenfst but
``tokenfst.errors`` and ``tokenfst.budget``.

Read in this order: ``plurals`` and ``printable`` (words and texts in messages), ``digits`` and ``sizes`` (numbers in
texts), ``arguments`` (checks of public calls), ``remedies`` (hints on how to make the value that a call wants) and
``token_ids`` (checks of calls that run for every token), ``locks`` (locks that are free after a fork), ``clock_cache``,
``json_objects``, ``notebook`` (what notebooks show), ``renamed`` and ``moved`` (old names of parameters and modules),
``names`` (the message for an unknown name).
"""
