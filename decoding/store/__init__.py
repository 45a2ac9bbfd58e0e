"""A shared store of compiled artifacts: one worker compiles, all others load.

An entry is an artifact under a key. The key is made of the constraint's digest, the vocabulary's fingerprint, the
options, and the compiler's version. So entries are immutable: they are written once under a key and never need
revalidation. A store is in a folder or at any location that fsspec supports. In front of it there may be a cache on
the local computer, mapped into memory and shared by processes.

Invariant: whoever asks for a key gets what was stored under it, or an error; nothing is trusted before it is verified.
Cost: one request to the storage and a SHA-256 of the entry, or a file of the cache that is mapped.

Read in this order: ``keys`` (the key of an entry), ``entries`` (its bytes), the room ``storages`` (where bytes are
stored), ``cache`` (on the local computer), ``documents`` (constraints as data), ``signatures`` (who wrote an entry),
``learned_files`` (facts that were learned while walking an automaton), ``vocabulary_files`` (the vocabularies of
entries), ``upkeep`` (damaged entries, and which are removed), ``store`` (``Store``), ``batch`` (many entries at once).
"""
