"""Events: the parts of a text that are already determined while the text is still being written.

Read in this order: ``event`` (the event types), ``json_events`` (JSON), ``capture_events`` (captures), ``stream`` (an
incremental text, and the mixin that all constraints share), ``partial`` (values that grow).
"""
