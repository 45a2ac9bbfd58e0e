"""Where the bytes of a store are: a folder, or a location that fsspec supports.

Every storage creates a file completely or not at all, and does not replace one that exists. Nothing here knows what
the bytes mean.

Invariant: a file that exists is complete. Cost: one request for each operation; two for a removal that first checks
whether the file has changed.

Read in this order: ``places`` (the interface ``Place``, and ``open_place``), ``inner_files`` (what is opened and locked
below a folder), ``local_files`` (folders), ``remote`` (everything else), ``turns`` (how the threads of a batch share a
processor while a storage works).
"""
