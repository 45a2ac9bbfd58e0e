"""A store of artifacts: what one worker has compiled, all others load.

An entry is an artifact under a key that says what it is of: the constraint's digest, the vocabulary's fingerprint, the
options, and the compiler's version. So nothing is ever changed under a key, only put once, and nobody needs to ask
whether what is there is still right. It lies in a folder or wherever fsspec reaches; below it there may be a cache of
this machine, mapped into memory and shared by processes.

Read in this order: ``keys`` (what an entry is of), ``entries`` (its bytes), ``places`` (what a store needs of a
storage), ``local_files`` and ``remote`` (folders; all else), ``cache`` (this machine's), ``documents`` (constraints
as data), ``signatures`` (who put it), ``learned_files`` (what
was found out while walking), ``upkeep`` (which entries go), ``store`` (``Store``), ``batch`` (many at once).
"""
