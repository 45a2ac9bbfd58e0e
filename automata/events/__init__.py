"""Events: the parts of a text that are already determined while the text is still being written.

Invariant: an event is true of every text that continues the text so far, and how the text is divided into chunks does
not change it. Cost: linear in the text.

Read in this order: ``event`` (the event types), ``json_events`` (JSON), ``capture_events`` (captures), ``stream`` (an
incremental text, and the mixin that all constraints share), ``partial`` (values that grow).
"""
